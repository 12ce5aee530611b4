package tamis.server;

import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.MethodDescriptorProto;
import com.google.protobuf.DescriptorProtos.ServiceDescriptorProto;
import com.google.protobuf.Descriptors;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import com.google.protobuf.RpcCallback;
import com.google.protobuf.RpcController;
import com.google.protobuf.Service;
import java.io.IOException;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.shaded.protobuf.InvalidProtocolBufferException;

/**
 * A service of ours as HBase calls it. HBase 2 speaks protobuf 2.5 here; so a call carries the bytes of our own message
 * in field 1 of a message, and so does its answer. `tamis.pb.RegionServer` is called on any region of an indexed table,
 * for the whole server.
 */
public final class Endpoint implements Service {
  /** The handler of requests; an IOException goes to the caller. */
  public interface Requests {
    byte[] call(String method, byte[] request) throws IOException, InvalidProtocolBufferException;
  }

  private static final Logger LOG = LoggerFactory.getLogger(Endpoint.class);
  private static final Descriptors.FileDescriptor MESSAGES =
      describe(FileDescriptorProto.newBuilder()
                   .setName("tamis_payload.proto")
                   .setPackage("tamis.pb")
                   .addMessageType(DescriptorProto.newBuilder().setName("Payload").addField(
                       FieldDescriptorProto.newBuilder()
                           .setName("bytes")
                           .setNumber(1)
                           .setType(FieldDescriptorProto.Type.TYPE_BYTES)
                           .setLabel(FieldDescriptorProto.Label.LABEL_OPTIONAL))));
  public static final Descriptors.Descriptor PAYLOAD = MESSAGES.findMessageTypeByName("Payload");
  public static final Descriptors.FieldDescriptor BYTES = PAYLOAD.findFieldByName("bytes");

  private static final Descriptors.ServiceDescriptor REGION_SERVER =
      service("RegionServer", "Mutate", "Search", "Poll", "Status", "StartJob", "GetJob");
  public static final Descriptors.ServiceDescriptor INSTALLATION = service("Installation", "Describe");
  public static final Descriptors.ServiceDescriptor INDEXED_TABLE = service("IndexedTable", "Describe");

  private final Descriptors.ServiceDescriptor service;
  private final Requests requests;

  public Endpoint(Requests requests) {
    this(REGION_SERVER, requests);
  }

  public Endpoint(Descriptors.ServiceDescriptor service, Requests requests) {
    this.service = service;
    this.requests = requests;
  }

  private static Descriptors.ServiceDescriptor service(String name, String... methods) {
    ServiceDescriptorProto.Builder service = ServiceDescriptorProto.newBuilder().setName(name);
    for (String method : methods) {
      service.addMethod(MethodDescriptorProto.newBuilder()
                            .setName(method)
                            .setInputType(".tamis.pb.Payload")
                            .setOutputType(".tamis.pb.Payload"));
    }
    return describe(FileDescriptorProto.newBuilder()
                        .setName("tamis_" + name + ".proto")
                        .setPackage("tamis.pb")
                        .addDependency(MESSAGES.getName())
                        .addService(service),
        MESSAGES)
        .findServiceByName(name);
  }

  private static Descriptors.FileDescriptor describe(
      FileDescriptorProto.Builder file, Descriptors.FileDescriptor... others) {
    try {
      return Descriptors.FileDescriptor.buildFrom(file.build(), others);
    } catch (Descriptors.DescriptorValidationException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public Descriptors.ServiceDescriptor getDescriptorForType() {
    return service;
  }

  @Override
  public Message getRequestPrototype(Descriptors.MethodDescriptor method) {
    return DynamicMessage.getDefaultInstance(PAYLOAD);
  }

  @Override
  public Message getResponsePrototype(Descriptors.MethodDescriptor method) {
    return DynamicMessage.getDefaultInstance(PAYLOAD);
  }

  @Override
  public void callMethod(
      Descriptors.MethodDescriptor method, RpcController controller, Message request, RpcCallback<Message> done) {
    Message answer = DynamicMessage.getDefaultInstance(PAYLOAD);
    try {
      byte[] bytes = requests.call(method.getName(), ((ByteString) request.getField(BYTES)).toByteArray());
      answer = DynamicMessage.newBuilder(PAYLOAD).setField(BYTES, ByteString.copyFrom(bytes)).build();
    } catch (InvalidProtocolBufferException e) {
      fail(controller, new DoNotRetryIOException("the request of " + method.getName() + " cannot be read"));
    } catch (IOException e) {
      fail(controller, e);
    } catch (Throwable e) {
      LOG.error("Failed to answer a call of {}", method.getName(), e);
      fail(controller, new DoNotRetryIOException("cannot answer a call of " + method.getName() + ": " + e, e));
    }
    done.run(answer);
  }

  private static void fail(RpcController controller, IOException e) {
    org.apache.hadoop.hbase.ipc.CoprocessorRpcUtils.setControllerException(controller, e);
  }
}
