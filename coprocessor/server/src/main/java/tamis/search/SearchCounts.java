package tamis.search;

/** The counters of a search in one region. */
final class SearchCounts {
  long indexSeeks;
  long entriesRead;
  long rowsRead;
  long rowsFromEntries;
  boolean scanned;
  long cellsUndecodable;
  long rowsUnparsed;
}
