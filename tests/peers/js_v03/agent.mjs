// The peers' agent, written with @a2a-js/sdk of the 0.3 line: node agent.mjs. Serves the three bindings on free ports of this
// machine and prints its address. What it does is told in tests/peers/our_agent.py, word for word the same; besides, it keeps
// webhooks and has an extended card.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { load, sdk } from "./peer.mjs";

const express = load("express");
const { AGENT_CARD_PATH } = await sdk("index.js");
const { DefaultRequestHandler, InMemoryPushNotificationStore, InMemoryTaskStore } = await sdk("server/index.js");
const { agentCardHandler, jsonRpcHandler, restHandler } = await sdk("server/express/index.js");
const { A2AService, grpcService } = await sdk("server/grpc/index.js");
const grpc = load("@grpc/grpc-js");

const QUESTIONS = { ask: ["input-required", "Which name?"], login: ["auth-required", "Please log in"] };
const ENDS = { fail: "failed", reject: "rejected" };
const FINAL = new Set(["completed", "failed", "rejected", "canceled", "input-required"]);

const textPart = (text) => ({ kind: "text", text });

class Gate {
  constructor() {
    this.opened = new Promise((resolve) => (this.open = resolve));
  }
}

// Publishes the events of one task.
class Work {
  constructor(taskId, contextId, bus) {
    Object.assign(this, { taskId, contextId, bus });
  }

  said(text) {
    return { kind: "message", messageId: randomUUID(), role: "agent", parts: [textPart(text)], contextId: this.contextId };
  }

  task(message) {
    const { taskId: id, contextId } = this;
    const history = [{ ...message, taskId: id, contextId }];
    this.bus.publish({ kind: "task", id, contextId, status: this.#status("submitted"), history });
  }

  status(state, text) {
    const { taskId, contextId } = this;
    const status = this.#status(state, text);
    this.bus.publish({ kind: "status-update", taskId, contextId, status, final: FINAL.has(state) });
  }

  artifact(parts, { artifactId = randomUUID(), append = false, lastChunk = true } = {}) {
    const { taskId, contextId } = this;
    const artifact = { artifactId, name: "result", parts };
    this.bus.publish({ kind: "artifact-update", taskId, contextId, artifact, append, lastChunk });
  }

  reply(text) {
    this.bus.publish(this.said(text));
  }

  #status(state, text) {
    const message = text === undefined ? undefined : { ...this.said(text), taskId: this.taskId };
    return { state, message, timestamp: new Date().toISOString() };
  }
}

class Words {
  #gates = new Map();
  #canceled = new Map();

  #gate(name) {
    if (!this.#gates.has(name)) this.#gates.set(name, new Gate());
    return this.#gates.get(name);
  }

  async execute(context, bus) {
    const message = context.userMessage;
    const text = message.parts[0].text;
    const [, word, rest] = /^(\S*) ?(.*)$/s.exec(text);
    const work = new Work(context.taskId, context.contextId, bus);
    if (word === "say" || word === "release") {
      if (word === "release") this.#gate(rest).open();
      work.reply(rest);
    } else if (context.task) {
      work.artifact([textPart(`Hello ${text}`)]);
      work.status("completed");
    } else {
      work.task(message);
      await this.#begin(word, rest, work, message);
    }
    bus.finished();
  }

  async #begin(word, rest, work, message) {
    if (word in QUESTIONS) return work.status(...QUESTIONS[word]);
    if (word in ENDS) return work.status(ENDS[word], rest);
    if (word === "hold" && !(await this.#hold(rest, work))) return undefined;
    if (word === "do") work.artifact([textPart(rest)]);
    if (word === "echo") work.artifact(message.parts.slice(1));
    if (word === "size") work.artifact([textPart(String(Buffer.from(message.parts[1].file.bytes, "base64").length))]);
    if (word === "stream") {
      const count = Number(rest);
      for (let number = 0; number < count; number += 1) {
        const more = { artifactId: "pieces", append: number > 0, lastChunk: number === count - 1 };
        work.artifact([textPart(`${number} `)], more);
      }
    }
    return work.status("completed");
  }

  async #hold(name, work) {
    const canceled = new Gate();
    this.#canceled.set(work.taskId, canceled);
    work.status("working", "Holding");
    const goesOn = await Promise.race([
      this.#gate(name).opened.then(() => true),
      canceled.opened.then(() => false),
    ]);
    if (goesOn) work.artifact([textPart(`Released ${name}`)]);
    else work.status("canceled");
    return goesOn;
  }

  async cancelTask(taskId, bus) {
    this.#canceled.get(taskId)?.open();
  }
}

function makeCard(url, grpcAddress, name) {
  const modes = ["text/plain", "application/json", "application/octet-stream", "image/png"];
  const description = "Does what the first word says";
  return {
    protocolVersion: "0.3.0",
    name,
    description,
    version: "1.0.0",
    url: `${url}/rpc`,
    preferredTransport: "JSONRPC",
    additionalInterfaces: [
      { url: `${url}/rpc`, transport: "JSONRPC" },
      { url: `${url}/rest`, transport: "HTTP+JSON" },
      { url: grpcAddress, transport: "GRPC" },
    ],
    capabilities: { streaming: true, pushNotifications: true },
    supportsAuthenticatedExtendedCard: true,
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [{ id: "words", name: "Words", description, tags: ["test"] }],
  };
}

const app = express();
const server = createServer(app);
const beside = new grpc.Server();
const grpcPort = await new Promise((resolve, reject) => {
  const found = (error, port) => (error ? reject(error) : resolve(port));
  beside.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), found);
});
server.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const [card, extended] = ["Words", "Words, extended"].map((name) => makeCard(url, `127.0.0.1:${grpcPort}`, name));
  const silent = { send: async () => {} };
  const requestHandler = new DefaultRequestHandler(
    card, new InMemoryTaskStore(), new Words(), undefined, new InMemoryPushNotificationStore(), silent, extended,
  );
  // Only those whom it knows are given the extended card; it knows everybody.
  const shared = { requestHandler, userBuilder: async () => ({ isAuthenticated: true, userName: "anybody" }) };
  beside.addService(A2AService, grpcService(shared));
  app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
  // The handlers read bodies of 100 kB at most, unless they were read before.
  app.use(express.json({ limit: "16mb" }));
  app.use("/rpc", jsonRpcHandler(shared));
  app.use("/rest", restHandler(shared));
  process.stdout.write(`${url}\n`);
});
