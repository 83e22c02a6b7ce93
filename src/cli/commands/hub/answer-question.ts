import { EXIT } from '../../../host/errors/usage-error.js';
import type { StatusReport } from '../../../status/status.js';
import { questionText } from '../../../status/status-text.js';
import type { Invocation } from '../../command.js';
import { note, print, printJson } from '../../output.js';
import { withGateway } from './hub-access.js';

/** `trunkline allow ID`: lets a call pass that waits for a person. Without an id, shows the calls that wait. */
export async function allowCall(invocation: Invocation): Promise<number> {
  return await answerQuestion(invocation, true);
}

/** `trunkline deny ID`: refuses a call that waits for a person. */
export async function denyCall(invocation: Invocation): Promise<number> {
  return await answerQuestion(invocation, false);
}

async function answerQuestion({ settings, words: [id], isJson }: Invocation, allow: boolean): Promise<number> {
  return await withGateway(settings, async ({ control }) => {
    if (id === undefined) {
      const { questions } = (await control.request('report')) as StatusReport;
      if (isJson) await printJson(questions);
      else await print(questions.length === 0 ? 'No call waits for a person.' : questions.map(questionText).join('\n'));
      return EXIT.ok;
    }
    const isAnswered = (await control.request('answer', { id, allow })) === true;
    if (!isAnswered)
      throw new Error(
        `No call with the id "${id}" waits for a person any more. \`trunkline allow\` shows those that do.`,
      );
    if (isJson) await printJson({ id, allowed: allow });
    else
      note(
        allow ? 'The call goes on. If it has ended meanwhile, it passes when it comes again.' : 'The call is refused.',
      );
    return EXIT.ok;
  });
}
