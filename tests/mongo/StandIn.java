// A server that speaks MongoDB's protocol, for tests: mongo-java-server, with change streams of our own.
//
// Its own change events lack the key of an update, the namespace, what was updated and the tokens between
// events. Those made here have the fields that MongoDB's manual describes, as far as they are listed below.

import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.AbstractCursor;
import de.bwaldvogel.mongo.backend.Cursor;
import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.aggregation.Aggregation;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.BsonTimestamp;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.exception.MongoServerError;
import de.bwaldvogel.mongo.oplog.Oplog;
import io.netty.channel.Channel;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

public class StandIn {
    public static void main(String[] arguments) throws Exception {
        MongoServer server = new MongoServer(new Backend());
        server.enableOplog();
        server.bind("127.0.0.1", Integer.parseInt(arguments[0]));
        while (System.in.read() >= 0) {
            // It ends with whoever started it.
        }
        server.shutdownNow();
        System.exit(0);
    }
}

class Backend extends MemoryBackend {
    private Events events;

    @Override
    protected Oplog createOplog() {
        events = new Events(this, getCursorRegistry());
        return events;
    }

    @Override
    public Document handleCommand(Channel channel, String database, String command, Document query) {
        if (command.equals("forgetHistory")) {
            events.forget();
            return new Document("ok", 1.0);
        }
        Document answer = super.handleCommand(channel, database, command, query);
        if (command.equalsIgnoreCase("ismaster")) {
            answer.put("logicalSessionTimeoutMinutes", 30);
        }
        if (answer.get("cursor") instanceof Document cursor) {
            Changes found = events.open.get(((Number) cursor.get("id")).longValue());
            if (found != null) {
                cursor.put("postBatchResumeToken", new Document("_data", found.position));
            }
        }
        answer.put("operationTime", events.now());
        return answer;
    }
}

class Events implements Oplog {
    final Map<Long, Changes> open = new ConcurrentHashMap<>();
    private final List<Document> written = new ArrayList<>();
    private final Map<String, Map<Object, Document>> documents = new HashMap<>();
    private final MemoryBackend backend;
    private final CursorRegistry cursors;
    private long last = Instant.now().getEpochSecond() << 32;
    private String forgotten = "";

    Events(MemoryBackend backend, CursorRegistry cursors) {
        this.backend = backend;
        this.cursors = cursors;
    }

    synchronized BsonTimestamp now() {
        return new BsonTimestamp(last);
    }

    synchronized void forget() {
        written.clear();
        forgotten = String.format("%016x", last);
        last += 1;
    }

    @Override
    public synchronized void handleInsert(String namespace, List<Document> inserted) {
        for (Document each : inserted) {
            known(namespace).put(each.get("_id"), each.cloneDeeply());
            add("insert", namespace, each.get("_id")).append("fullDocument", each.cloneDeeply());
        }
    }

    @Override
    public synchronized void handleUpdate(String namespace, Document selector, Document update, List<Object> ids) {
        boolean isReplacement = update.keySet().stream().noneMatch(name -> name.startsWith("$"));
        for (Object id : ids) {
            Document now = stored(namespace, id);
            known(namespace).put(id, now);
            Document event = add(isReplacement ? "replace" : "update", namespace, id);
            if (isReplacement) {
                event.append("fullDocument", now);
            } else {
                event.append("updateDescription", description(update, now));
            }
        }
    }

    @Override
    public synchronized void handleDelete(String namespace, Document query, List<Object> ids) {
        for (Object id : ids) {
            known(namespace).remove(id);
            add("delete", namespace, id);
        }
    }

    @Override
    public synchronized void handleDropCollection(String namespace) {
        documents.remove(namespace);
        Document dropped = add("drop", namespace, null);
        String token = ((Document) dropped.get("_id")).get("_data") + "ff";
        written.add(new Document("_id", new Document("_data", token)).append("operationType", "invalidate")
            .append("clusterTime", dropped.get("clusterTime")).append("hidden ns", namespace));
    }

    private Document add(String type, String namespace, Object id) {
        last = Math.max(last + 1, Instant.now().getEpochSecond() << 32);
        int dot = namespace.indexOf('.');
        Document event = new Document("_id", new Document("_data", String.format("%016x", last)))
            .append("operationType", type).append("clusterTime", new BsonTimestamp(last))
            .append("wallTime", Instant.now()).append("hidden ns", namespace)
            .append("ns", new Document("db", namespace.substring(0, dot)).append("coll", namespace.substring(dot + 1)));
        if (!type.equals("drop")) {
            event.append("documentKey", new Document("_id", id));
        }
        written.add(event);
        notifyAll();
        return event;
    }

    private Map<Object, Document> known(String namespace) {
        return documents.computeIfAbsent(namespace, name -> new HashMap<>());
    }

    private Document stored(String namespace, Object id) {
        int dot = namespace.indexOf('.');
        return backend.resolveDatabase(namespace.substring(0, dot)).resolveCollection(namespace.substring(dot + 1), true)
            .queryAllAsStream().filter(each -> id.equals(each.get("_id"))).findFirst().orElseThrow().cloneDeeply();
    }

    private static Document description(Document update, Document now) {
        Document updated = new Document();
        for (String operator : update.keySet()) {
            if (!operator.equals("$unset")) {
                ((Document) update.get(operator)).keySet().forEach(name -> updated.append(name, now.get(name)));
            }
        }
        Document unset = (Document) update.getOrDefault("$unset", new Document());
        return new Document("updatedFields", updated).append("removedFields", new ArrayList<>(unset.keySet()))
            .append("truncatedArrays", new ArrayList<>());
    }

    synchronized List<Document> after(String position, String namespace, int most, boolean looksUp) {
        List<Document> found = new ArrayList<>();
        for (Document each : written) {
            if (namespace.equals(each.get("hidden ns")) && token(each).compareTo(position) > 0 && found.size() < most) {
                found.add(shown(each, namespace, looksUp));
                if (each.get("operationType").equals("invalidate")) {
                    break;
                }
            }
        }
        return found;
    }

    private Document shown(Document event, String namespace, boolean looksUp) {
        Document made = event.clone();
        made.remove("hidden ns");
        if (looksUp && event.get("operationType").equals("update")) {
            made.append("fullDocument", known(namespace).get(((Document) event.get("documentKey")).get("_id")));
        }
        return made;
    }

    static String token(Document event) {
        return (String) ((Document) event.get("_id")).get("_data");
    }

    synchronized String end() {
        return String.format("%016x", last);
    }

    @Override
    public synchronized Cursor createCursor(Document wanted, String namespace, Aggregation aggregation) {
        Document after = (Document) wanted.get("startAfter"), resume = (Document) wanted.get("resumeAfter");
        BsonTimestamp at = (BsonTimestamp) wanted.get("startAtOperationTime");
        String start = end();
        if (after != null || resume != null) {
            start = (String) (after != null ? after : resume).get("_data");
        } else if (at != null) {
            start = String.format("%016x", at.getValue() - 1);
        }
        if (resume != null && start.endsWith("ff")) {
            throw new MongoServerError(260, "InvalidResumeToken", "can't resume after an invalidation");
        }
        if (start.compareTo(forgotten) < 0) {
            throw new MongoServerError(286, "ChangeStreamHistoryLost", "the resume point is no longer in the oplog");
        }
        boolean looksUp = "updateLookup".equals(wanted.get("fullDocument"));
        Changes made = new Changes(cursors.generateCursorId(), this, namespace, start, looksUp);
        cursors.add(made);
        open.put(made.getId(), made);
        return made;
    }
}

class Changes extends AbstractCursor {
    volatile String position;
    private final Events events;
    private final String namespace;
    private final boolean looksUp;
    private boolean isOver;

    Changes(long id, Events events, String namespace, String position, boolean looksUp) {
        super(id);
        this.events = events;
        this.namespace = namespace;
        this.position = position;
        this.looksUp = looksUp;
    }

    @Override
    public boolean isEmpty() {
        return isOver;
    }

    @Override
    public List<Document> takeDocuments(int wanted) {
        synchronized (events) {
            int most = wanted > 0 ? wanted : 101;
            List<Document> found = events.after(position, namespace, most, looksUp);
            if (!found.isEmpty()) {
                Document last = found.get(found.size() - 1);
                position = Events.token(last);
                isOver = last.get("operationType").equals("invalidate");
            }
            if (!isOver && found.size() < most && position.compareTo(events.end()) < 0) {
                position = events.end();
            }
            return found;
        }
    }
}
