"""Results into an index of OpenSearch or Elasticsearch, each effectively once by its key."""

from penstock.targets.opensearch.target import OpenSearchIndex

__all__ = ["OpenSearchIndex"]
