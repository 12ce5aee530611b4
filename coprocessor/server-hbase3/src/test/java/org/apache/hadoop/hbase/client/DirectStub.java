package org.apache.hadoop.hbase.client;

import java.io.IOException;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.ipc.CoprocessorRpcUtils.BlockingRpcCallback;
import org.apache.hadoop.hbase.ipc.HBaseRpcController;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.CoprocessorServiceRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.CoprocessorServiceResponse;

/** One call of one server, not repeated, as HBase 3 has it. */
public final class DirectStub {
  private DirectStub() {}

  public static CoprocessorServiceResponse execService(
      Connection connection, ServerName server, HBaseRpcController controller, CoprocessorServiceRequest request)
      throws IOException, org.apache.hbase.thirdparty.com.google.protobuf.ServiceException {
    BlockingRpcCallback<CoprocessorServiceResponse> answer = new BlockingRpcCallback<>();
    ((AsyncConnectionImpl) connection.toAsyncConnection())
        .getRegionServerStub(server)
        .execService(controller, request, answer);
    CoprocessorServiceResponse response = answer.get();
    if (controller.failed()) throw controller.getFailed();
    return response;
  }
}
