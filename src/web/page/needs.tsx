import { plural } from '../../wire/json/printable.js';
import type { Need } from '../server/contract.js';
import { answer, logIn, restart, review } from './changes.js';
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
            <Remedy {...need} />
            {need.command !== null && <Command text={need.command} />}
          </div>
        </Card>
      ))}
      <Findings />
    </>
  );
}

function Remedy({ action, server, question }: Need) {
  if (question !== null)
    return (
      <>
        <Change label="Allow" about={question} kind="primary" run={() => answer(question, true)} />
        <Change label="Deny" about={question} run={() => answer(question, false)} />
      </>
    );
  if (action === null || server === null) return null;
  const about = { about: server, kind: 'primary' };
  if (action === 'review') return <Action label="Review" {...about} run={() => review(server)} />;
  if (action === 'login') return <Change label="Log in" {...about} run={() => logIn(server)} />;
  return <Change label="Restart" {...about} run={() => restart(server)} />;
}

/** Findings of the doctor. Those that are fine are only counted. */
function Findings() {
  const { answer, fault, at = 0, load } = useRead('GET /findings', {}, hub.value?.kind, hub.value !== undefined);
  // A client may be registered in a file that the checks do not know.
  const isServing = (description.value?.clients.length ?? 0) > 0;
  const all = answer?.filter(({ code }) => !(isServing && code === 'TL-CLIENT-NONE')) ?? [];
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
      {bad.map(({ level, code, sentence: title, evidence, remedy }) => {
        const about = { level: level === 'fail' ? level : 'warn', title, code } as const;
        return <Card key={code + title} {...about} cause={evidence} detail={remedy} />;
      })}
    </section>
  );
}
