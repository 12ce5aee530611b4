package tamis.hbase;

/** How a drive ends, as its exit code: a row that was missed is told from a drive that could not be driven. */
enum DriveEnd {
  GOOD(0),
  FAILED(2),
  ROW_MISSED(3);

  private final int code;

  DriveEnd(int code) {
    this.code = code;
  }

  interface Drive {
    DriveEnd run() throws Exception;
  }

  /** Does not return. Threads that still run are not waited for. */
  static void exit(Drive drive) {
    DriveEnd end = FAILED;
    try {
      end = drive.run();
    } catch (Throwable e) {
      e.printStackTrace();
    }
    System.exit(end.code);
  }
}
