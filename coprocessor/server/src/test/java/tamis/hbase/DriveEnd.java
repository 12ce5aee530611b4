package tamis.hbase;

/** The exit code of a drive. 3: a row was missed; 2: the drive could not run. */
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
