import type { GlobalOptions } from '../../../app/global-options.js';
import { runHub } from '../../../app/hub-process.js';
import { LISTENER_DESCRIPTOR } from '../../../hub/attach/start-hub.js';

/** `trunkline hub serve`, which only Trunkline itself runs: the process of a hub. */
export async function serveAsHub(options: GlobalOptions, place: string): Promise<number> {
  return await runHub(options, { place, descriptor: LISTENER_DESCRIPTOR });
}
