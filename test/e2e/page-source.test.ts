// The facts and actions behind the page, with the real hub of a client.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createPageSource } from '../../src/cli/commands/web/hub-source.js';
import type { Frame, HubState, Need } from '../../src/web/contract.js';
import type { PageSource, Topics } from '../../src/web/page-source.js';
import { LAB } from '../support/gateway-process.js';
import { HubPlace, WITH_HUB } from '../support/hub-place.js';
import { until } from '../support/processes.js';

type State = Extract<Frame, { readonly kind: 'state' }>;

/** A place with a source, and the frames that one page gets. */
class Page {
  readonly place: HubPlace;
  readonly frames: Frame[] = [];
  source!: PageSource;
  close = () => {};
  want: (topics: Topics) => void = () => {};

  constructor(place: HubPlace) {
    this.place = place;
  }

  static async open(servers: Record<string, Record<string, unknown>>): Promise<Page> {
    const page = new Page(new HubPlace({ servers }));
    const { place } = page;
    onTestFinished(async () => {
      page.close();
      await place.dispose();
    });
    // The client and this process have to find the same hub.
    Object.assign(process.env, WITH_HUB);
    Object.assign(process.env, { TRUNKLINE_HUB_DIR: place.hubs, XDG_DATA_HOME: join(place.folder, 'data') });
    writeFileSync(
      page.file,
      JSON.stringify({ servers: { one: { command: 'node', args: [LAB, `run=${place.folder}`] } } }),
    );
    page.source = await createPageSource({ config: page.file, verbosity: 0, logFile: undefined }, false);
    page.follow();
    return page;
  }

  get file(): string {
    return join(this.place.folder, 'trunkline.yaml');
  }

  follow(): void {
    const following = this.source.follow((frame) => this.frames.push(frame));
    this.want = (topics) => following.want(topics);
    this.close = () => following.close();
  }

  get state(): State | undefined {
    return this.frames.findLast((frame): frame is State => frame.kind === 'state');
  }

  async untilHub<Kind extends HubState['kind']>(
    kind: Kind,
    isIt: (hub: Extract<HubState, { kind: Kind }>) => boolean = () => true,
  ) {
    const found = () => {
      const hub = this.state?.hub;
      return hub?.kind === kind && isIt(hub as Extract<HubState, { kind: Kind }>) ? hub : undefined;
    };
    await until(`the hub is ${kind}: ${JSON.stringify(this.state)?.slice(0, 300)}`, () => found() !== undefined);
    return found() as Extract<HubState, { kind: Kind }>;
  }

  async untilNeed(isIt: (need: Need) => boolean): Promise<Need> {
    await until(`a need: ${JSON.stringify(this.state?.needs)}`, () => this.state?.needs.some(isIt) === true);
    return this.state?.needs.find(isIt) as Need;
  }
}

const ONE = { one: { sharing: 'all' } };

it('says that no hub runs and what starts one, and follows the hub when it starts, is killed, and starts again', async () => {
  const page = await Page.open(ONE);
  const none = await page.untilHub('none');
  expect(page.frames[0]).toMatchObject({ kind: 'hello', configFile: page.file, isReadOnly: false });
  expect(none).toMatchObject({
    because: 'No hub runs.',
    fault: null,
    servers: [{ server: 'one', runs: 'node', isDisabled: false }],
  });
  expect(none.remedy).toContain('The next client that connects starts one');
  const client = await page.place.client();
  const { hub, report } = await page.untilHub('running', ({ report }) => report.servers[0]?.state === 'ready');
  expect(hub).toMatchObject({ pid: page.place.hubPid, clients: [{ name: 'test', version: '1', view: null }] });
  expect(report.hub?.clients).toBe(1);
  process.kill(hub.pid, 'SIGKILL');
  const killed = await page.untilHub('none');
  expect(killed.because).toContain(`The hub (pid ${hub.pid}) was killed or has crashed`);
  await client.call('one__echo');
  const { hub: next } = await page.untilHub('running', ({ report }) => report.servers[0]?.state === 'ready');
  expect(next.number).toBe(hub.number + 1);
});
