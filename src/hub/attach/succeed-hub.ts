import { isNewer } from '../../packages/package-needs.js';
import { VERSION } from '../../version.js';
import { type Claim, claimSuccessor } from '../claim.js';
import { movePredecessors } from './control-client.js';

/**
 * Starts a hub of this version if the one with this number is older. The clients of the older one move when they have
 * nothing in flight. The older one serves on if its successor cannot be started.
 */
export async function succeedOlder(
  folder: string,
  older: { readonly number: number; readonly version: string },
  start: (claim: Claim) => void,
): Promise<void> {
  if (!isNewer(VERSION, older.version)) return;
  const claim = await claimSuccessor(folder, older.number).catch(() => undefined);
  if (claim === undefined) return;
  try {
    start(claim);
  } catch {
    return;
  }
  // Clients that move before the next hub runs wait in the queue of its socket.
  await movePredecessors(folder, claim.number, VERSION);
}
