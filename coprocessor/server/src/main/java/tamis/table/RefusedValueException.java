package tamis.table;

/** A value that has no place where it is to stand. */
public final class RefusedValueException extends Exception {
  public RefusedValueException(String message) {
    super(message);
  }
}
