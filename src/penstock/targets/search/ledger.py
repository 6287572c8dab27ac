"""The ledger of an index: for each sink a document, in a bucket of their own."""

import tantivy

from penstock.log.ledger import Entry
from penstock.targets.search.description import BUCKET, LEDGER, ROW
from penstock.targets.search.documents import BUCKETS

OWN_BUCKET = BUCKETS


def entries(index: tantivy.Index) -> dict[str, Entry]:
    """Return the last entries of all sinks that write here."""
    index.reload()
    searcher = index.searcher()
    asked = tantivy.Query.term_query(index.schema, BUCKET, OWN_BUCKET, "basic")
    most = max(1, searcher.doc_freq(BUCKET, OWN_BUCKET))
    found = [searcher.doc(address) for _, address in searcher.search(asked, most, count=False).hits]
    return {str(each.get_first(LEDGER)): Entry.from_json(bytes(each.get_first(ROW) or b"")) for each in found}


def put_entry(writer: tantivy.IndexWriter, sink: str, entry: Entry) -> None:
    """Replace the entry of a sink in what is committed next."""
    writer.delete_documents_by_term(LEDGER, sink)
    document = tantivy.Document()
    document.add_text(LEDGER, sink)
    document.add_unsigned(BUCKET, OWN_BUCKET)
    document.add_bytes(ROW, entry.to_json())
    writer.add_document(document)
