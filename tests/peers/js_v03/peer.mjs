// Where the peer's packages are: in the environment that tools/peers.py made, and not beside these programs.

import { pathToFileURL } from "node:url";
import { load } from "../js/peer.mjs";

// A part of the SDK as a module: only so do its parts share their classes.
export const sdk = (part) =>
  import(pathToFileURL(`${process.env.PEER_MODULES}/node_modules/@a2a-js/sdk/dist/${part}`).href);

export { load };
