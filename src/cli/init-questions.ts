import type { Client } from '../clients/client-table.js';

/** What `trunkline init` asks a person. */
export interface InitQuestions {
  /** `undefined` if the person gives up. */
  chooseClients(installed: readonly Client[]): Promise<readonly Client[] | undefined>;
  confirm(question: string): Promise<boolean>;
}

/** `undefined` if nobody can answer. */
export async function questionsOnTerminal(): Promise<InitQuestions | undefined> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return undefined;
  const { confirm, isCancel, multiselect } = await import('@clack/prompts');
  return {
    chooseClients: async (installed) => {
      const answer = await multiselect({
        message: 'Register Trunkline with which clients? (space: choose, enter: go on)',
        options: installed.map((client) => ({ value: client, label: client.title })),
        initialValues: [...installed],
      });
      return isCancel(answer) ? undefined : answer;
    },
    confirm: async (question) => (await confirm({ message: question })) === true,
  };
}
