import { type HttpRoute, type RouteAnswer, type RouteRequest, singleParams } from '../../downstream/http/http-route.js';
import type { OpenQuestion } from '../../status/status-facts.js';
import { printable } from '../../wire/json/printable.js';
import type { FeatureHost, SignedInPerson } from '../feature.js';
import { LOGIN_MS, SealedTexts } from '../sealed-texts.js';
import { escaped, faultPage, pageLimit, redirect, termRows, webPage } from '../web-page.js';
import type { Questions } from './questions.js';

/** The path of the page, below the public URL. */
const QUESTIONS_PATH = '/questions';

/** The routes of the page. */
export function questionRoutes(options: OwnQuestionsOptions): readonly HttpRoute[] {
  const { http } = options.host.config.gateway;
  const own = new OwnQuestions(options);
  const page = pageLimit(http, options.host.platform.clock);
  return [
    { method: 'GET', path: QUESTIONS_PATH, serve: page((request) => own.show(request)) },
    { method: 'POST', path: QUESTIONS_PATH, serve: page((request) => own.answer(request)) },
  ];
}

interface OwnQuestionsOptions {
  readonly host: FeatureHost;
  readonly questions: Questions;
  /** The groups whose members answer for everybody. */
  readonly groups: () => readonly string[];
}

/** A question on the page of a person, which the page seals into its form. */
interface Shown {
  readonly id: string;
  readonly principal: string;
}

const NO_FRONT =
  'This gateway cannot tell who you are in a browser. An administrator can add auth.front, or answer with trunkline allow.';

/**
 * The page on which users over HTTP answer the questions about their calls, and members of some groups those of all. It shows the
 * questions of this gateway only, and is only for persons who have signed in.
 */
class OwnQuestions {
  readonly #options: OwnQuestionsOptions;
  readonly #sealed: SealedTexts;
  readonly #publicUrl: string;

  constructor(options: OwnQuestionsOptions) {
    const { seals, config } = options.host;
    this.#options = options;
    this.#sealed = new SealedTexts(seals.keysFor('questions'), () => Date.now());
    this.#publicUrl = config.gateway.http.publicUrl ?? '';
  }

  async show({ headers }: RouteRequest): Promise<RouteAnswer> {
    const { host, questions } = this.#options;
    const persons = host.features.first('persons');
    if (persons === undefined) return faultPage(404, NO_FRONT);
    const person = persons.personOf(headers.cookie);
    if (person === undefined) return await persons.signIn(QUESTIONS_PATH, headers.cookie);
    const own = questions.open.filter((question) => this.#mayAnswer(person, question));
    const forms = own.map((question) => {
      const shown: Shown = { id: question.id, principal: person.principal };
      const { server, kind, name, arguments: args, client, user = '', say, rule } = question;
      const rows = [
        ['Server', escaped(server)],
        ['Call', `${kind} <bdi>${escaped(name)}</bdi>`],
        ['Called by', `${escaped(client)}${user === '' ? '' : ` of <bdi>${escaped(user)}</bdi>`}`],
        ['Asked because of', escaped(say === undefined ? rule : `${rule}: ${printable(say)}`)],
        ['Arguments', escaped(args === '' ? 'none' : args)],
      ] as const;
      return `${termRows(rows)}<form method="post" action="${QUESTIONS_PATH}"><input type="hidden" name="request" value="${escaped(this.#sealed.seal('question', shown, LOGIN_MS))}"><button name="answer" value="allow">Allow</button><button name="answer" value="deny">Deny</button></form>`;
    });
    // A page with buttons stays as it is, so that no button moves under the pointer.
    const reload = forms.length > 0 ? '' : '<meta http-equiv="refresh" content="5">';
    const who = `<p>You are <q><bdi>${escaped(printable(person.name))}</bdi></q>.</p>`;
    return webPage(200, 'Calls that wait for a yes', who + (forms.join('') || '<p>No call waits.</p>'), reload);
  }

  /** Answers a question. Only the form of this page can, for the person who sees the page. */
  answer({ headers, body }: RouteRequest): RouteAnswer {
    const { host, questions } = this.#options;
    if (headers.origin !== this.#publicUrl) return faultPage(403, 'Another site sent its form.');
    const person = host.features.first('persons')?.personOf(headers.cookie);
    const { request = '', answer } = singleParams(new URLSearchParams(body)) ?? {};
    const shown = this.#sealed.open<Shown>('question', request);
    const question = questions.open.find(({ id }) => id === shown?.id);
    if (person === undefined || shown?.principal !== person.principal)
      return faultPage(403, 'The page is too old, or it is of another person. Open it again.');
    if (question === undefined) return faultPage(409, 'This call does not wait any more.');
    if (!this.#mayAnswer(person, question)) return faultPage(403, 'This call is of another user.');
    questions.answer(question.id, answer === 'allow' ? 'yes' : 'no');
    return redirect(`${this.#publicUrl}${QUESTIONS_PATH}`);
  }

  #mayAnswer({ principal, groups }: SignedInPerson, question: OpenQuestion): boolean {
    return question.principal === principal || this.#options.groups().some((group) => groups.includes(group));
  }
}
