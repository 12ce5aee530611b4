package tamis.hbase;

/** What a search did in one region. */
final class SearchCounts {
  long indexSeeks;
  long entriesRead;
  long rowsRead;
  long rowsReturned;
  boolean scanned;
  long cellsUndecodable;
  long rowsUnparsed;
}
