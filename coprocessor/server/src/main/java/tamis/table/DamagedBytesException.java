package tamis.table;

/** Bytes that are not what they should be. */
public final class DamagedBytesException extends Exception {
  public DamagedBytesException(String message) {
    super(message);
  }
}
