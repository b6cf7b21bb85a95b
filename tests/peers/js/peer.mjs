// Where the peer's packages are: in the environment that tools/peers.py made, and not beside these programs.

import { createRequire } from "node:module";

const home = process.env.PEER_MODULES;
if (!home) throw new Error("PEER_MODULES names no folder");

export const load = createRequire(`${home}/`);
