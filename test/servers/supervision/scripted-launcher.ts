import type { LaunchEvents, Launched, Launcher, StopLadder } from '../../../src/spec/launch.js';
import type { ChildSpec } from '../../../src/spec/server-spec.js';

/** One launch, played by the test. */
export interface ScriptedLaunch {
  readonly key: string;
  readonly args: readonly string[];
  readonly generation: number;
  readonly events: LaunchEvents;
  /** The ladders by which its end was asked for. */
  readonly ladders: StopLadder[];
  isGone: boolean;
  /** Lets the group end and the supervisor hear of it. */
  vanish(): Promise<void>;
}

/** A launcher without processes: the test decides what becomes of each launch. */
export class ScriptedLauncher implements Launcher {
  readonly launches: ScriptedLaunch[] = [];
  /** Plays each launch as soon as it happens, from within `launch`. */
  onLaunch: (launch: ScriptedLaunch) => void = () => {};
  /** Whether nobody has to be waited for. */
  beginsAtOnce = true;
  /** Whether a group goes as soon as its end is asked for. */
  endsAtOnce = false;

  get live(): ScriptedLaunch[] {
    return this.launches.filter((launch) => !launch.isGone);
  }

  latest(key?: string): ScriptedLaunch {
    const launch = this.launches.findLast((one) => key === undefined || one.key === key);
    if (launch === undefined) throw new Error('Nothing was launched');
    return launch;
  }

  launch(spec: ChildSpec, generation: number, events: LaunchEvents): Launched {
    let reportGone = () => {};
    const gone = new Promise<void>((resolve) => {
      reportGone = resolve;
    });
    const launch: ScriptedLaunch = {
      key: spec.key,
      args: spec.args,
      generation,
      events,
      ladders: [],
      isGone: false,
      vanish: async () => {
        launch.isGone = true;
        reportGone();
        await flush();
      },
    };
    this.launches.push(launch);
    if (this.beginsAtOnce) events.began();
    this.onLaunch(launch);
    return {
      pid: 1_000 + this.launches.length,
      end: (ladder) => {
        launch.ladders.push(ladder);
        if (this.endsAtOnce) void launch.vanish();
        return gone;
      },
    };
  }
}

/** Lets promises that are settled already run their continuations. */
export function flush(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
