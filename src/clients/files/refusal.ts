/** The reason not to read or change a file. The message is a part of a sentence and shows nothing of the file. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}
