// Tells what @a2a-js/sdk reads in a card: JSON on standard input, what was read as JSON on standard output. The same as
// tests/peers/programs/read_card.py.

import { text } from "node:stream/consumers";
import { load } from "./peer.mjs";

const { AgentCard } = load("@a2a-js/sdk");
const { DefaultAgentCardResolver } = load("@a2a-js/sdk/client");
const KINDS = {
  apiKeySecurityScheme: "apiKey",
  httpAuthSecurityScheme: "http",
  oauth2SecurityScheme: "oauth2",
  openIdConnectSecurityScheme: "openIdConnect",
  mtlsSecurityScheme: "mutualTLS",
};

const given = await text(process.stdin);
const answered = async () => new Response(given, { status: 200, headers: { "content-type": "application/json" } });
// A card whose first scheme has a type is left as it is by the resolver, and is read by who needs it.
await new DefaultAgentCardResolver({ fetchImpl: answered }).resolve("http://agent.invalid");
const card = AgentCard.fromJSON(JSON.parse(given));
const each = (object, change) => Object.fromEntries(Object.entries(object ?? {}).map(([k, v]) => [k, change(v)]));
const requirements = (found) => (found ?? []).map(({ schemes }) => each(schemes, (scopes) => scopes.list));
const seen = {
  name: card.name,
  interfaces: card.supportedInterfaces.map((i) => [i.url, i.protocolBinding, i.protocolVersion]),
  extended: card.capabilities.extendedAgentCard ?? false,
  schemes: each(card.securitySchemes, (scheme) => KINDS[scheme.scheme.$case]),
  security: requirements(card.securityRequirements),
  skill_security: card.skills.map((skill) => requirements(skill.securityRequirements)),
};
process.stdout.write(JSON.stringify(seen));
