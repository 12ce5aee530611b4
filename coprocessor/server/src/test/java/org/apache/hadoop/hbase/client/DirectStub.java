package org.apache.hadoop.hbase.client;

import java.io.IOException;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.ipc.HBaseRpcController;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.CoprocessorServiceRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.CoprocessorServiceResponse;

/** One call of one server, not repeated, as HBase 2 has it. */
public final class DirectStub {
  private DirectStub() {}

  public static CoprocessorServiceResponse execService(
      Connection connection, ServerName server, HBaseRpcController controller, CoprocessorServiceRequest request)
      throws IOException, org.apache.hbase.thirdparty.com.google.protobuf.ServiceException {
    return ((ClusterConnection) connection).getClient(server).execService(controller, request);
  }
}
