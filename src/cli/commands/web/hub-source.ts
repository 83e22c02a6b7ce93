import { homedir } from 'node:os';
import type { GlobalOptions } from '../../../app/global-options.js';
import { VERSION } from '../../../version.js';
import type { Reads } from '../../../web/contract.js';
import { PageRefusal, type PageSource } from '../../../web/page-source.js';

/** Facts and actions of the hub of a configuration, for the page. */
export async function createPageSource(settings: GlobalOptions, isReadOnly: boolean): Promise<PageSource> {
  const refuse = () => Promise.reject(new PageRefusal(503, 'No hub runs.'));
  const configFile = settings.config ?? '';
  return {
    follow: (take) => {
      take({ kind: 'hello', version: VERSION, configFile, isReadOnly, home: homedir() });
      const hub = { kind: 'none', because: 'No hub runs.', remedy: '', servers: [], fault: null } as const;
      take({ kind: 'state', at: Date.now(), hub, needs: [] });
      return { want: () => {}, close: () => {} };
    },
    reads: new Proxy({}, { get: () => refuse }) as { [Path in keyof Reads]: () => Promise<Reads[Path]['answer']> },
    actions: new Proxy({}, { get: () => refuse }) as PageSource['actions'],
    openRecording: refuse,
  };
}
