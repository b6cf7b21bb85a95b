// Tells what @a2a-js/sdk of the 0.3 line reads in a card: JSON on standard input, what was read as JSON on standard output.
// The same as tests/peers/programs/read_card.py.

import { text } from "node:stream/consumers";
import { sdk } from "./peer.mjs";

const { DefaultAgentCardResolver } = await sdk("client/index.js");

const given = await text(process.stdin);
const answered = async () => new Response(given, { status: 200, headers: { "content-type": "application/json" } });
const card = await new DefaultAgentCardResolver({ fetchImpl: answered }).resolve("http://agent.invalid");
const pairs = [[card.url, card.preferredTransport], ...(card.additionalInterfaces ?? []).map((i) => [i.url, i.transport])];
const once = [...new Map(pairs.map((pair) => [JSON.stringify(pair), pair])).values()];
const seen = {
  name: card.name,
  interfaces: once.map((pair) => [...pair, card.protocolVersion]),
  extended: card.supportsAuthenticatedExtendedCard ?? false,
  schemes: Object.fromEntries(Object.entries(card.securitySchemes ?? {}).map(([name, scheme]) => [name, scheme.type])),
  security: card.security ?? [],
  skill_security: card.skills.map((skill) => skill.security ?? []),
};
process.stdout.write(JSON.stringify(seen));
