// Connects Trunkline to servers that rows play in memory: the pipes are streams of this process, and all else is real.
import { PassThrough } from 'node:stream';
import type { ChildSpec } from '../../src/spec/server-spec.js';
import { joinPipes, type StdioDialerOptions } from '../../src/upstream/stdio/stdio-dialer.js';
import type { Dialed, Dialer, DialTarget, UpstreamListener } from '../../src/upstream/upstream-connection.js';
import type { EndedBecause } from '../../src/wire/mcp/outcome.js';
import { type Play, playServer } from './play.js';

/** Dials servers by their keys. */
export class PlayedDialer implements Dialer<ChildSpec> {
  readonly #options: StdioDialerOptions;
  readonly #plays: ReadonlyMap<string, Play>;

  constructor(options: StdioDialerOptions, plays: ReadonlyMap<string, Play>) {
    this.#options = options;
    this.#plays = plays;
  }

  dial(target: DialTarget<ChildSpec>, listener: UpstreamListener): Dialed {
    const { spec, generation, profile, era } = target;
    const pipes = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
    const giveUp = (because: EndedBecause) => {
      bridge.close('exited', because);
      listener.unfit(because);
    };
    const health = { silent: () => {}, violated: giveUp, pipeClosed: () => {} };
    const { bridge, drain } = joinPipes(pipes, target, listener, this.#options, health);
    playServer(this.#plays.get(spec.key) ?? {}, generation, pipes, () => {
      drain();
      // The output that was written before the end is read first.
      pipes.stdout.end(() => {
        bridge.close('exited');
        listener.closed({ code: 1, signal: null });
      });
    });
    const open = async () => {
      const known = await profile;
      if (!bridge.isClosed) listener.handshakeStarted();
      const timeoutMs = spec.timeouts.startMs;
      return await this.#options.dialect.open(bridge, { generation, profile: known, timeoutMs, era, listener });
    };
    return {
      pid: undefined,
      connection: open(),
      end: async () => {
        bridge.close('stopped');
        for (const pipe of Object.values(pipes)) pipe.destroy();
      },
    };
  }
}
