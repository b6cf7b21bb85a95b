// Signs or verifies a card with @a2a-js/sdk. The same as tests/peers/programs/sign_card.py; with "parsed" what is signed is
// the SDK's own object for the card.

import { text } from "node:stream/consumers";
import { load } from "./peer.mjs";

const { AgentCard, generateAgentCardSignature, verifyAgentCardSignature } = load("@a2a-js/sdk");
const { importJWK } = load("jose");

const given = JSON.parse(await text(process.stdin));
const key = await importJWK(given.key, given.header.alg);
console.debug = () => {};
const verify = async () => {
  try {
    await verifyAgentCardSignature(async () => key)(given.card);
    return true;
  } catch {
    return false;
  }
};
const signer = generateAgentCardSignature(key, given.header);
const sign = async () =>
  given.parsed ? AgentCard.toJSON(await signer(AgentCard.fromJSON(given.card))) : await signer(given.card);
process.stdout.write(JSON.stringify("d" in given.key ? await sign() : await verify()));
