// The peers' agent, written with @a2a-js/sdk: node agent.mjs. Serves the three bindings on free ports of this machine
// and prints its address. What it does is told in tests/peers/our_agent.py, word for word the same.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { load } from "./peer.mjs";

const express = load("express");
const { AGENT_CARD_PATH, AgentCard, Role, TaskState } = load("@a2a-js/sdk");
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = load("@a2a-js/sdk/server");
const { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } = load("@a2a-js/sdk/server/express");
const { A2AService, grpcService } = load("@a2a-js/sdk/server/grpc");
const grpc = load("@grpc/grpc-js");

const QUESTIONS = {
  ask: [TaskState.TASK_STATE_INPUT_REQUIRED, "Which name?"],
  login: [TaskState.TASK_STATE_AUTH_REQUIRED, "Please log in"],
};
const ENDS = { fail: TaskState.TASK_STATE_FAILED, reject: TaskState.TASK_STATE_REJECTED };

const textPart = (text) => ({ content: { $case: "text", value: text }, filename: "", mediaType: "", metadata: undefined });
const textOf = (part) => (part?.content?.$case === "text" ? part.content.value : "");

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
    return {
      messageId: randomUUID(), role: Role.ROLE_AGENT, parts: [textPart(text)], taskId: this.taskId,
      contextId: this.contextId, metadata: undefined, extensions: [], referenceTaskIds: [],
    };
  }

  task(message) {
    const status = this.#status(TaskState.TASK_STATE_SUBMITTED);
    this.bus.publish(AgentEvent.task({
      id: this.taskId, contextId: this.contextId, status, artifacts: [], history: [message], metadata: undefined,
    }));
  }

  status(state, text) {
    const { taskId, contextId } = this;
    this.bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: this.#status(state, text), metadata: undefined }));
  }

  artifact(parts, { artifactId = randomUUID(), append = false, lastChunk = true } = {}) {
    const { taskId, contextId } = this;
    const artifact = { artifactId, name: "result", description: "", parts, metadata: undefined, extensions: [] };
    this.bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk, metadata: undefined }));
  }

  reply(text) {
    this.bus.publish(AgentEvent.message({ ...this.said(text), taskId: "" }));
  }

  #status(state, text) {
    return { state, message: text === undefined ? undefined : this.said(text), timestamp: new Date().toISOString() };
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
    const text = textOf(message.parts[0]);
    const [, word, rest] = /^(\S*) ?(.*)$/s.exec(text);
    const work = new Work(context.taskId, context.contextId, bus);
    if (word === "say" || word === "release") {
      if (word === "release") this.#gate(rest).open();
      work.reply(rest);
    } else if (context.task) {
      // Every turn has to begin with a task, whatever came before.
      bus.publish(AgentEvent.task(context.task));
      work.artifact([textPart(`Hello ${text}`)]);
      work.status(TaskState.TASK_STATE_COMPLETED);
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
    if (word === "size") work.artifact([textPart(String(message.parts[1].content.value.length))]);
    if (word === "stream") {
      const count = Number(rest);
      for (let number = 0; number < count; number += 1) {
        const more = { artifactId: "pieces", append: number > 0, lastChunk: number === count - 1 };
        work.artifact([textPart(`${number} `)], more);
      }
    }
    return work.status(TaskState.TASK_STATE_COMPLETED);
  }

  async #hold(name, work) {
    const canceled = new Gate();
    this.#canceled.set(work.taskId, canceled);
    work.status(TaskState.TASK_STATE_WORKING, "Holding");
    const goesOn = await Promise.race([
      this.#gate(name).opened.then(() => true),
      canceled.opened.then(() => false),
    ]);
    if (goesOn) work.artifact([textPart(`Released ${name}`)]);
    else work.status(TaskState.TASK_STATE_CANCELED);
    return goesOn;
  }

  async cancelTask(taskId) {
    this.#canceled.get(taskId)?.open();
  }
}

function makeCard(url, grpcAddress) {
  const modes = ["text/plain", "application/json", "application/octet-stream", "image/png"];
  return AgentCard.fromJSON({
    name: "Words",
    description: "Does what the first word says",
    version: "1.0.0",
    supportedInterfaces: [["JSONRPC", `${url}/rpc`], ["HTTP+JSON", `${url}/rest`], ["GRPC", grpcAddress]].map(
      ([protocolBinding, url]) => ({ url, protocolBinding, protocolVersion: "1.0" }),
    ),
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [{ id: "words", name: "Words", description: "Does what the first word says", tags: ["test"] }],
  });
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
  const card = makeCard(url, `127.0.0.1:${grpcPort}`);
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Words());
  const shared = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  beside.addService(A2AService, grpcService(shared));
  app.use(`/${AGENT_CARD_PATH}`.replace("//", "/"), agentCardHandler({ agentCardProvider: requestHandler }));
  // The handlers read bodies of 100 kB at most, unless they were read before.
  app.use(express.json({ limit: "16mb", type: ["application/json", "application/a2a+json"] }));
  app.use("/rpc", jsonRpcHandler(shared));
  app.use("/rest", restHandler(shared));
  process.stdout.write(`${url}\n`);
});
