"""Names of the platform's own columns: what goes with every event, and what operators put beside it."""

SOURCE = "_source"  # where an event is in the log
POSITION = ("topic", "partition", "offset")  # what identifies an event, of all that `_source` has
POSITION_TYPE = "struct<topic:string,partition:int,offset:bigint>"
JOINED = "joined"  # in `_source`: the places of further events that a row is of, where streams were joined
DELETED = "_deleted"  # whether a change of a table is a deletion
CHANGE = "_change"  # how a captured row came to be: operation, row before, commit
ROW_MARKS = (SOURCE, DELETED, CHANGE)  # what a table's change has beside its row
HEADERS = "array<struct<key:string,value:binary>>"
SOURCE_TYPE = f"topic string, partition int, offset long, written timestamp, headers {HEADERS}"

TIME = "_time"  # the column of which Spark makes the watermark; null where an event is dated too far ahead
US, PARTITION, OFFSET = ORDER = ("_us", "_partition", "_offset")  # an event's time and place, as state has it

START, END = "start", "end"  # of a window
FINAL = "penstock.final"  # in the metadata of `end`: a result is emitted once the watermark has passed it
