// The client of @a2a-js/sdk, driven from outside: node client.mjs. It takes and answers the same lines as
// tests/peers/programs/sdk_client.py, where they are told.

import { createInterface } from "node:readline";
import { load } from "./peer.mjs";

const types = load("@a2a-js/sdk");
const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } =
  load("@a2a-js/sdk/client");
const { GrpcTransportFactory } = load("@a2a-js/sdk/client/grpc");
const grpc = load("@grpc/grpc-js");

const TRANSPORTS = {
  JSONRPC: () => new JsonRpcTransportFactory(),
  "HTTP+JSON": () => new RestTransportFactory(),
  GRPC: () => new GrpcTransportFactory({ grpcChannelCredentials: grpc.credentials.createInsecure() }),
};

const CALLS = {
  get_task: ["getTask", types.GetTaskRequest, types.Task],
  list_tasks: ["listTasks", types.ListTasksRequest, types.ListTasksResponse],
  cancel_task: ["cancelTask", types.CancelTaskRequest, types.Task],
  create_task_push_notification_config: [
    "createTaskPushNotificationConfig", types.TaskPushNotificationConfig, types.TaskPushNotificationConfig,
  ],
  get_task_push_notification_config: [
    "getTaskPushNotificationConfig", types.GetTaskPushNotificationConfigRequest, types.TaskPushNotificationConfig,
  ],
  list_task_push_notification_configs: [
    "listTaskPushNotificationConfig",
    types.ListTaskPushNotificationConfigsRequest,
    types.ListTaskPushNotificationConfigsResponse,
  ],
  delete_task_push_notification_config: [
    "deleteTaskPushNotificationConfig", types.DeleteTaskPushNotificationConfigRequest, null,
  ],
};
const STREAMS = {
  send_message: ["sendMessageStream", types.SendMessageRequest],
  subscribe: ["resubscribeTask", types.SubscribeToTaskRequest],
};

let client;
const streams = new Map();

// With headers of our own the transport is called, since the client writes A2A-Version itself.
function callee(command) {
  const headers = command.headers ?? {};
  const own = Object.keys(headers).length > 0;
  return [own ? client.transport : client, { signal: AbortSignal.timeout(20_000), serviceParameters: headers }];
}

const ACTIONS = {
  async connect({ url, binding }) {
    const card = await new DefaultAgentCardResolver().resolve(url);
    // What the card does not offer is asked for all the same: the answer of the server is what is looked at.
    const capabilities = { ...card.capabilities, extendedAgentCard: true, pushNotifications: true };
    const factory = new ClientFactory({ transports: [TRANSPORTS[binding]()] });
    client = await factory.createFromAgentCard({ ...card, capabilities });
    return types.AgentCard.toJSON(card);
  },

  async send_message(command) {
    const [called, options] = callee(command);
    const answer = await called.sendMessage(types.SendMessageRequest.fromJSON(command.request), options);
    return "messageId" in answer
      ? { message: types.Message.toJSON(answer) }
      : { task: types.Task.toJSON(answer) };
  },

  async get_extended_agent_card() {
    return types.AgentCard.toJSON(await client.getAgentCard({ signal: AbortSignal.timeout(20_000) }));
  },

  async open({ stream, call, request }) {
    const [method, kind] = STREAMS[call];
    const left = new AbortController();
    const events = client[method](kind.fromJSON(request), { signal: left.signal });
    streams.set(stream, { events, left });
    return {};
  },

  async next({ stream }) {
    const { done, value } = await streams.get(stream).events.next();
    return done ? null : types.StreamResponse.toJSON(value);
  },

  async close({ stream }) {
    const { events, left } = streams.get(stream);
    streams.delete(stream);
    left.abort();
    await events.return().catch(() => {});
    return {};
  },
};

async function run(command) {
  const action = ACTIONS[command.do];
  if (action) return action(command);
  const [method, request, answer] = CALLS[command.do];
  const [called, options] = callee(command);
  const found = await called[method](request.fromJSON(command.request), options);
  return answer && found ? answer.toJSON(found) : {};
}

// Each binding has classes of its own for the protocol's errors: RestTaskNotFoundError is its TaskNotFoundError. It has
// one class for -32700, -32600 and -32602.
function nameOf(error) {
  if (error?.envelopeCode === -32602) return "InvalidParamsError";
  return (error?.name ?? "Error").replace(/^(Rest|JsonRpc)(?=.*Error$)/, "");
}

async function answer(command) {
  let line;
  try {
    line = { id: command.id, saw: await run(command) };
  } catch (error) {
    line = { id: command.id, error: nameOf(error), message: String(error?.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

for await (const line of createInterface({ input: process.stdin })) answer(JSON.parse(line));
