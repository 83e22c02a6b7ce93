import { plural } from '../gateway/status/status-text.js';
import type { Need } from '../web/contract.js';
import { enable, logIn, restart, review } from './changes.js';
import { ServerLink } from './servers.js';
import { description, hub, needs, report } from './state.js';
import { clock } from './text.js';
import { Action, Card, Change, Command, useRead, Waiting } from './widgets.js';

export function Needs() {
  const list = needs.value;
  if (list === undefined) return <Waiting />;
  return (
    <>
      {list.length === 0 && hub.value?.kind === 'running' && (
        <p class="well">
          Nothing of the hub needs you. {plural(report.value?.servers.length ?? 0, 'server')},{' '}
          {plural(report.value?.tools ?? 0, 'tool')}, {plural(description.value?.clients.length ?? 0, 'client')}.
        </p>
      )}
      {list.map((need) => (
        <Card key={need.id} {...need} link={need.server !== null && <ServerLink server={need.server} />}>
          <div class="row">
            {need.action !== null && <Remedy {...need.action} />}
            {need.command !== null && <Command text={need.command} />}
          </div>
        </Card>
      ))}
      <Findings />
    </>
  );
}

function Remedy({ kind, server }: NonNullable<Need['action']>) {
  switch (kind) {
    case 'restart':
      return <Change label="Restart" about={server} kind="primary" run={() => restart(server)} />;
    case 'enable':
      return <Change label="Enable" about={server} kind="primary" run={() => enable(server, true)} />;
    case 'login':
      return <Change label="Log in" about={server} kind="primary" run={() => logIn(server)} />;
    case 'review':
      return <Action label="Review" about={server} kind="primary" run={() => review(server)} />;
    case 'doctor':
      return null;
  }
}

/** Findings of the doctor. Those that are fine are only counted. */
function Findings() {
  const { answer, fault, at = 0, load } = useRead('/findings', {}, hub.value?.kind);
  // A client may be registered in a file that the checks do not know.
  const isServing = (description.value?.clients.length ?? 0) > 0;
  const all = answer?.findings.filter(({ code }) => !(isServing && code === 'TL-CLIENT-NONE')) ?? [];
  const bad = all.filter(({ level }) => level !== 'ok');
  return (
    <section>
      <div class="head">
        <h2>Checks of this machine</h2>
        <Action label="Check again" run={load} />
      </div>
      {answer === undefined || fault !== undefined ? (
        <Waiting fault={fault} />
      ) : (
        <p class="quiet" role="status">
          {clock(at)}: {plural(all.length, 'check')}, {bad.length === 0 ? 'all fine' : `${bad.length} to look at`}.{' '}
          <code>trunkline doctor</code> shows all.
        </p>
      )}
      {bad.map(({ level, code, sentence, evidence, remedy }) => (
        <Card
          key={code + sentence}
          level={level === 'fail' ? 'fail' : 'warn'}
          title={sentence}
          code={code}
          cause={evidence}
          detail={remedy}
        />
      ))}
    </section>
  );
}
