import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.opensearch.common.logging.LogConfigurator;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One node of OpenSearch on loopback: SingleNode FOLDER HTTP_PORT TRANSPORT_PORT. */
public class SingleNode extends Node {
    SingleNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class), false);
    }

    public static void main(String[] given) throws Exception {
        Path home = Path.of(given[0]);
        for (String folder : List.of("config", "modules", "plugins")) {
            Files.createDirectories(home.resolve(folder));
        }
        Settings settings = Settings.builder()
            .put("path.home", home.toString())
            .put("cluster.name", "penstock-tests")
            .put("node.name", "one")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", given[1])
            .put("transport.port", given[2])
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        LogConfigurator.configureWithoutConfig(settings);
        Node node = new SingleNode(new Environment(settings, home.resolve("config")));
        node.start();
        new CountDownLatch(1).await();
    }
}
