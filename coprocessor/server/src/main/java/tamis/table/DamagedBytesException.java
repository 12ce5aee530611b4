package tamis.table;

/** Bytes do not have the expected format: they are damaged, or another program wrote them. */
public final class DamagedBytesException extends Exception {
  public DamagedBytesException(String message) {
    super(message);
  }
}
