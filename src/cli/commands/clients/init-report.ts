import { isRecord } from '../../../json/is-record.js';
import { type EmitJson, printJson } from '../../output.js';

/** The steps of `trunkline init` that print JSON of their own. */
type Step = 'install' | 'check' | 'connect';

/** Collects what the steps of `trunkline init --json` would print, and prints it as one value. */
export class InitReport {
  readonly isJson: boolean;
  readonly #values = new Map<Step, unknown[]>();

  constructor(isJson: boolean) {
    this.isJson = isJson;
  }

  /** The options of a step: it prints for a person, or passes its value on. */
  step(step: Step): { readonly isJson: boolean; readonly emit: EmitJson } {
    const emit = (value: unknown) => {
      this.#values.set(step, [...(this.#values.get(step) ?? []), value]);
    };
    return { isJson: this.isJson, emit };
  }

  /** Prints the whole, if JSON is wanted. A step that did not run is `null`. */
  async print(plan: { readonly dryRun: boolean; readonly clients: readonly string[]; readonly import: unknown }) {
    if (!this.isJson) return;
    const [install = null] = this.#values.get('install') ?? [];
    const [check = null] = this.#values.get('check') ?? [];
    await printJson({ ...plan, install, check, changes: this.#changes() });
  }

  /** Registering and taking servers out are two lists of changes. */
  #changes(): unknown[] {
    return (this.#values.get('connect') ?? []).flatMap((value) =>
      isRecord(value) && Array.isArray(value.changes) ? value.changes : [],
    );
  }
}
