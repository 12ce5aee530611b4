package tamis.table;

/** The types of columns. The numbers are stored; they never change. */
public enum Type {
  TEXT(1, "text"),
  BYTES(2, "bytes"),
  INT64(3, "int64"),
  DOUBLE(4, "double"),
  BOOL(5, "bool"),
  TIMESTAMP(6, "timestamp"),
  DECIMAL(7, "decimal");

  public final int number;
  public final String text;

  Type(int number, String text) {
    this.number = number;
    this.text = text;
  }

  /** null when there is none. */
  public static Type of(int number) {
    for (Type type : values()) {
      if (type.number == number) return type;
    }
    return null;
  }

  public static Type of(String text) {
    for (Type type : values()) {
      if (type.text.equals(text)) return type;
    }
    return null;
  }
}
