import type { GlobalOptions } from '../../../app/global-options.js';
import { type HubClientForCommand, openHubClient } from '../../../app/hub-client.js';
import { tell } from '../../output.js';

/** Connects a command to the running hub. `undefined` if no hub runs, or if it refuses, which is reported on stderr. */
export async function runningHub(settings: GlobalOptions): Promise<HubClientForCommand | undefined> {
  const opened = await openHubClient(settings);
  if (opened.kind === 'opened') return opened.hub;
  if (opened.kind === 'refused')
    tell(
      `trunkline: the running hub cannot be used, because ${opened.because}; this command starts servers of its own`,
    );
  return undefined;
}
