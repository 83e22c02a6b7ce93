import type { Installer, Installing, InstallOutcome } from '../../../src/spec/launch.js';
import type { ChildSpec } from '../../../src/spec/server-spec.js';
import { flush } from './scripted-launcher.js';

/** One installation, played by the test. */
export interface ScriptedInstall {
  readonly key: string;
  isCancelled: boolean;
  succeed(): Promise<void>;
  fail(reason: string): Promise<void>;
}

/** An installer without packages: the test decides what becomes of each installation. */
export class ScriptedInstaller implements Installer {
  readonly installs: ScriptedInstall[] = [];

  latest(): ScriptedInstall {
    const install = this.installs.at(-1);
    if (install === undefined) throw new Error('Nothing is being installed');
    return install;
  }

  install({ missing: _, ...spec }: ChildSpec): Installing {
    let settle = (_outcome: InstallOutcome) => {};
    const outcome = new Promise<InstallOutcome>((resolve) => {
      settle = resolve;
    });
    const install: ScriptedInstall = {
      key: spec.key,
      isCancelled: false,
      succeed: async () => {
        settle({ kind: 'installed', spec: { ...spec, args: ['program'] } });
        await flush();
      },
      fail: async (reason) => {
        settle({ kind: 'failed', reason });
        await flush();
      },
    };
    this.installs.push(install);
    return {
      outcome,
      cancel: () => {
        install.isCancelled = true;
      },
    };
  }
}
