import { isHubWanted } from '../../../app/attach.js';
import type { GlobalOptions } from '../../../app/global-options.js';
import { earlierHubs, findHubSite, type HubSite, notedPid, reachHub } from '../../../app/running-hub.js';
import { EXIT } from '../../../errors/usage-error.js';
import type { HubControl, NoControl } from '../../../hub/attach/control-client.js';
import type { HubDescription } from '../../../hub/hub-answers.js';
import { tell } from '../../output.js';
import { type HubFacts, noHubText, REFUSED, silentText } from './hub-text.js';

/** The running hub, for a command. */
export interface Reached {
  readonly site: HubSite;
  readonly control: HubControl;
}

/** Runs a command on the running hub and returns the exit code. Says so if no hub runs, or if it cannot be reached. */
export async function withHub(options: GlobalOptions, work: (reached: Reached) => Promise<number>): Promise<number> {
  const site = findHubSite(options);
  const control = await reachHub(site.folder);
  if (typeof control === 'string') return notReached(control, site);
  try {
    return await work({ site, control });
  } catch (error) {
    // The hub refuses the command in a sentence, or has ended.
    if (!(error instanceof Error)) throw error;
    tell(`trunkline: ${error.message}`);
    return EXIT.failed;
  } finally {
    control.close();
  }
}

/** Says why no hub can be reached. */
function notReached(because: NoControl, { configFile, folder }: HubSite): number {
  tell(explain(because, configFile, folder));
  return because === 'not running' ? EXIT.noHub : EXIT.failed;
}

function explain(because: NoControl, configFile: string, folder: string): string {
  switch (because) {
    case 'not running':
      return noHubText(configFile, isHubOn(configFile));
    case 'silent':
      return silentText(notedPid(folder));
    case 'refused':
      return REFUSED;
  }
}

/** A file that cannot be read keeps no client from starting a hub, which says what is wrong with it. */
export function isHubOn(configFile: string): boolean {
  try {
    return isHubWanted(configFile);
  } catch {
    return true;
  }
}

/** What the hub and the earlier hubs that still drain are doing. With `withUsage`, also what their processes use. */
export async function describeHubs({ site, control }: Reached, withUsage = false): Promise<HubFacts> {
  const [hub, ...draining] = await Promise.all([
    describeHub(control, withUsage),
    ...earlierHubs(site.folder).map(async (number) => {
      const earlier = await reachHub(site.folder, number);
      if (typeof earlier === 'string') return undefined;
      // It may end meanwhile, with its last client.
      const description = await describeHub(earlier, withUsage).catch(() => undefined);
      earlier.close();
      return description;
    }),
  ]);
  return { hub: hub as HubDescription, draining: draining.flatMap((each) => each ?? []) };
}

async function describeHub(control: HubControl, withUsage: boolean): Promise<HubDescription> {
  return (await control.request('describe', { withUsage })) as HubDescription;
}
