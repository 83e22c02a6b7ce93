import { legacyEra } from '../../../src/downstream/legacy/legacy-session.js';
import { modernEra } from '../../../src/downstream/modern/modern-session.js';
import { ClientPipe } from '../../../src/downstream/stdio/stdio-transport.js';
import { eraChooser } from '../../../src/downstream/transport.js';
import { AttachSession } from '../../../src/hub/attach/attach-session.js';
import { HubFraming } from '../../../src/hub/server/framing.js';
import { copyInto } from '../../../src/wire/io/byte-reader.js';
import { splice } from '../../../src/wire/json/splice.js';
import type { scriptGateway } from '../../support/scripted-gateway.js';
import { bytesOf, lineOf, scan } from '../../support/wire.js';

/** Connection of a client to the gateway. */
export interface ClientWire {
  say(line: string): void;
  /** The lines that came since the last call. */
  read(): string[];
  close(): void;
}

type ScriptedGateway = Pick<ReturnType<typeof scriptGateway>, 'gateway' | 'clock' | 'connect'>;

/** Connects the client to the gateway itself. */
export function directWire({ connect }: ScriptedGateway, principal: string): ClientWire {
  const client = connect({ principal });
  return {
    say: (line) => client.say(line),
    read: () => client.received.lines.splice(0),
    close: () => client.session.close(),
  };
}

/** A client that is attached to a hub, and that goes on at the next hub when this one dies. */
export class AttachedWire implements ClientWire {
  readonly #session: AttachSession;
  readonly #principal: string;
  #hub: { readonly pipe: ClientPipe; readonly written: Uint8Array[]; unfinished: string } | undefined;
  #hubs = 0;
  #text = '';

  constructor(principal: string) {
    this.#principal = principal;
    this.#session = new AttachSession({
      toClient: (bytes) => {
        this.#text += Buffer.from(bytes).toString();
      },
      toHub: (bytes) => this.#toHub(bytes),
      onMoved: () => {},
      onClosed: () => {},
    });
  }

  /** Lets a hub with this gateway serve the client from now on. */
  attach({ gateway, clock }: ScriptedGateway): void {
    const written: Uint8Array[] = [];
    const send: HubFraming['sink']['send'] = (message) => {
      written.push(Buffer.concat([splice(message), Buffer.from('\n')]));
      message.lease?.release();
    };
    const framing = new HubFraming({ send, unwrittenBytes: 0 }, this.#hubs);
    this.#hubs += 1;
    const { sink, openReply, firstRequestId } = framing;
    const era = { clock, scan, gateway, serverInfo: { name: 'trunkline', version: '1.2.3' } };
    const chooseEra = eraChooser({ legacy: legacyEra(era), modern: modernEra(era) });
    const pipe = new ClientPipe({ scan, chooseEra, sink, principal: this.#principal, openReply, firstRequestId });
    this.#hub = { pipe, written, unfinished: '' };
    this.#session.attached();
  }

  /** Ends the hub. Before that, this number of its messages reach the client. */
  die(messages: number): void {
    this.#hub?.written.splice(messages);
    this.#deliver();
    this.#hub = undefined;
    this.#session.detached();
  }

  say(line: string): void {
    this.#session.fromClient(lineOf(line));
  }

  read(): string[] {
    this.#deliver();
    const lines = this.#text.split('\n');
    this.#text = '';
    return lines.filter((line) => line !== '');
  }

  close(): void {
    this.#hub?.pipe.close();
  }

  #toHub(bytes: Uint8Array): void {
    const hub = this.#hub;
    if (hub === undefined) return;
    const lines = `${hub.unfinished}${Buffer.from(bytes)}`.split('\n');
    hub.unfinished = lines.pop() ?? '';
    for (const line of lines) hub.pipe.receive(bytesOf(line));
  }

  #deliver(): void {
    for (const bytes of this.#hub?.written.splice(0) ?? []) copyInto(this.#session, bytes);
  }
}
