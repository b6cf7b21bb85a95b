// The client of @a2a-js/sdk of the 0.3 line, driven from outside: node client.mjs. It takes and answers the same lines as
// tests/peers/programs/sdk_client_v03.py, where they are told.

import { createInterface } from "node:readline";
import { load, sdk } from "./peer.mjs";

const errors = await sdk("client/index.js");
const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } =
  errors;
const { GrpcTransportFactory } = await sdk("client/transports/grpc/index.js");
const grpc = load("@grpc/grpc-js");

const TRANSPORTS = {
  JSONRPC: () => new JsonRpcTransportFactory(),
  "HTTP+JSON": () => new RestTransportFactory(),
  GRPC: () => new GrpcTransportFactory({ grpcChannelCredentials: grpc.credentials.createInsecure() }),
};
const CALLS = {
  send_message: "sendMessage",
  get_task: "getTask",
  cancel_task: "cancelTask",
  create_task_push_notification_config: "setTaskPushNotificationConfig",
  get_task_push_notification_config: "getTaskPushNotificationConfig",
  list_task_push_notification_configs: "listTaskPushNotificationConfig",
  delete_task_push_notification_config: "deleteTaskPushNotificationConfig",
  get_extended_agent_card: "getExtendedAgentCard",
};
const STREAMS = { send_message: "sendMessageStream", subscribe: "resubscribeTask" };
const NAMES = {
  [-32600]: "InvalidRequestError",
  [-32601]: "MethodNotFoundError",
  [-32602]: "InvalidParamsError",
  [-32603]: "InternalError",
  [-32001]: "TaskNotFoundError",
  [-32002]: "TaskNotCancelableError",
  [-32003]: "PushNotificationNotSupportedError",
  [-32004]: "UnsupportedOperationError",
  [-32005]: "ContentTypeNotSupportedError",
  [-32006]: "InvalidAgentResponseError",
  [-32007]: "AuthenticatedExtendedCardNotConfiguredError",
};

let client;
const streams = new Map();

const ACTIONS = {
  async connect({ url, binding }) {
    const card = await new DefaultAgentCardResolver().resolve(url);
    // What the card does not offer is asked for all the same: the answer of the server is what is looked at.
    const asking = {
      ...card,
      supportsAuthenticatedExtendedCard: true,
      capabilities: { ...card.capabilities, pushNotifications: true },
    };
    const factory = new ClientFactory({ transports: [TRANSPORTS[binding]()], preferredTransports: [binding] });
    client = await factory.createFromAgentCard(asking);
    return card;
  },

  async open({ stream, call, request }) {
    const left = new AbortController();
    streams.set(stream, { events: client[STREAMS[call]](request, { signal: left.signal }), left });
    return {};
  },

  async next({ stream }) {
    const { done, value } = await streams.get(stream).events.next();
    return done ? null : value;
  },

  async close({ stream }) {
    const { events, left } = streams.get(stream);
    streams.delete(stream);
    left.abort();
    await events.return().catch(() => {});
    return {};
  },

  async get_extended_agent_card() {
    // The client asks for it only once it has the public one.
    return client.transport.getExtendedAgentCard({ signal: AbortSignal.timeout(20_000) });
  },
};

async function run(command) {
  const action = ACTIONS[command.do];
  if (action) return action(command);
  return (await client[CALLS[command.do]](command.request, { signal: AbortSignal.timeout(20_000) })) ?? {};
}

// The client has a class for each of the protocol's errors, and for JSON-RPC others that keep the code; some come as the
// cause of a plain Error.
function nameOf(error) {
  for (const found of [error, error?.cause]) {
    const code = found?.errorResponse?.error?.code ?? /\(Code: (-\d+)\)/.exec(found?.message ?? "")?.[1];
    if (NAMES[code]) return NAMES[code];
    const name = Object.values(NAMES).find((name) => errors[name] && found instanceof errors[name]);
    if (name) return name;
  }
  return error?.constructor?.name ?? "Error";
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
