import { type Signal, useSignal } from '@preact/signals';
import type { ComponentChildren, Ref } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ServerReport } from '../../status/status.js';
import { STATE_WORDS } from '../../status/status-text.js';
import { printable, printableLines } from '../../wire/json/printable.js';
import type { DiffLine, Requests } from '../server/contract.js';
import { linePath, topOf, type Values } from './lines.js';
import { queried, setQuery } from './route.js';
import { toneOf } from './servers-list.js';
import { ask } from './session.js';
import { hello } from './state.js';
import { number } from './text.js';

/** Escapes text of a server, a client or a file, because it may contain anything, such as characters that hide other text. */
export const foreign = printable;

/** Renders sentences of Trunkline, in which backticks enclose code. Line breaks stay, because examples have lines of their own. */
export function prose(text: string): ComponentChildren {
  return printableLines(text)
    .split(/`([^`]+)`/)
    .map((part, at) => (at % 2 === 0 ? part : <code key={at}>{part}</code>));
}

/** A name, which is not broken into lines if it is short. A long one keeps some width in a narrow table. */
export function whole(name: string): ComponentChildren {
  return <span class={name.length < 25 ? 'whole' : 'long'}>{foreign(name)}</span>;
}

/** Region that scrolls. It can be reached by keyboard, because it could not be scrolled otherwise. */
export function Block(props: {
  label: string;
  kind?: string;
  box?: Ref<HTMLElement>;
  onScroll?: () => void;
  children: ComponentChildren;
}) {
  const { label, kind = '', box = null, children } = props;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: See above.
    <section class={`block ${kind}`} aria-label={label} tabIndex={0} ref={box} onScroll={props.onScroll}>
      <pre>{typeof children === 'string' ? printableLines(children) : children}</pre>
    </section>
  );
}

interface ActionProps {
  label: string;
  /** Object of the action, for a screen reader. */
  about?: string;
  kind?: string;
  run: () => unknown;
}

/** Button whose work may take a while. It shows a refusal beside itself. */
export function Action({ label, about = '', kind = '', run }: ActionProps) {
  const isBusy = useSignal(false);
  const fault = useSignal('');
  const start = async () => {
    if (isBusy.value) return;
    isBusy.value = true;
    fault.value = '';
    try {
      await run();
    } catch (error) {
      fault.value = (error as Error).message;
    }
    isBusy.value = false;
  };
  return (
    <span class="action">
      <button type="button" class={kind} aria-description={foreign(about)} aria-busy={isBusy} onClick={start}>
        {label}
      </button>
      <span role="alert">{prose(fault.value)}</span>
    </span>
  );
}

/** An action that changes something. Absent if the page was opened to read only. */
export function Change(props: ActionProps) {
  return hello.value?.isReadOnly === false ? <Action {...props} /> : null;
}

export function Command({ text }: { text: string }) {
  const isCopied = useSignal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    isCopied.value = true;
    setTimeout(() => {
      isCopied.value = false;
    }, 2_000);
  };
  return (
    <span class="command">
      <code>{foreign(text)}</code>
      <Action label={isCopied.value ? 'Copied' : 'Copy'} about={text} run={copy} />
    </span>
  );
}

export function State({ state }: { state: ServerReport['state'] }) {
  const word = STATE_WORDS[state] ?? state;
  return <span class={`state ${toneOf(state)} ${word.length < 25 ? 'whole' : ''}`}>{word}</span>;
}

export interface CardProps {
  level: 'fail' | 'warn' | 'note';
  title: string;
  detail?: string | undefined;
  code?: string | null;
  link?: ComponentChildren;
  cause?: readonly string[];
  children?: ComponentChildren;
}

/** One thing to know, with its cause and its remedy. */
export function Card({ level, title, detail = '', code = null, link, cause = [], children }: CardProps) {
  return (
    <article class={`card ${level}`}>
      <h2>
        {level !== 'note' && <span class="unseen">{level === 'fail' ? 'Failure: ' : 'Warning: '}</span>}
        {prose(title)}
      </h2>
      {(code !== null || link) && (
        <p class="meta">
          {link} {code !== null && <code>{foreign(code)}</code>}
        </p>
      )}
      {detail !== '' && <p>{prose(detail)}</p>}
      {cause.length > 0 && <Block label={`Cause of: ${foreign(title)}`}>{cause.join('\n')}</Block>}
      {children}
    </article>
  );
}

/** Dialog that gives the focus back to the element that had it. */
export function Dialog(props: {
  title: string;
  close?: string | undefined;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onClose={props.onClose}>
      <div class="head">
        <h2 id="dialog-title">{foreign(props.title)}</h2>
        <button type="button" onClick={() => dialog.current?.close()}>
          {props.close ?? 'Close'}
        </button>
      </div>
      {props.children}
    </dialog>
  );
}

const SIGNS = { ' ': '', '-': 'removed', '+': 'added' };

export function Diff({ lines, label }: { lines: readonly DiffLine[]; label: string }) {
  return (
    <Block label={label} kind="diff">
      {lines.map(({ sign, text }, at) => (
        <div key={at} class={SIGNS[sign]}>
          {sign} {foreign(text)}
        </div>
      ))}
    </Block>
  );
}

/** Line of the last hour. Its value stands beside it, so it is for the eye only. */
export function Line({ values, least, isWide = false }: { values: Values; least: number; isWide?: boolean }) {
  const [width, height] = isWide ? [320, 56] : [64, 16];
  const size = { width, height, viewBox: `0 -1 ${width} ${height}` };
  return (
    <svg class="line" {...size} preserveAspectRatio="none" aria-hidden="true">
      <path d={linePath(values, topOf(values, least), width, height - 2)} />
    </svg>
  );
}

/** Sign for a value that is unknown or does not apply. */
export const NONE = <span class="quiet">–</span>;

/**
 * A title, and the content of a cell, whose text is escaped. A column with `sort` can be sorted by this number, the largest first.
 * A column with `width` needs a medium or a wide window.
 */
export type Column<Row> = readonly [
  title: string,
  cell: (row: Row) => ComponentChildren,
  sort?: ((row: Row) => number | null) | undefined,
  width?: 'medium' | 'wide' | undefined,
];

interface TableProps<Row> {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  kindOf?: (row: Row) => string | undefined;
  /** Title of the column by which the rows are sorted. */
  by?: Signal<string>;
  kind?: string;
}

/** Table that becomes a list of cards in a narrow window. */
export function Table<Row>({ caption, columns, rows, keyOf, kindOf, kind = 'cards', ...props }: TableProps<Row>) {
  const own = useSignal('');
  const { by = own } = props;
  const limit = useSignal(PAGE_ROWS);
  const value = columns.find(([title]) => title === by.value)?.[2];
  const order = value === undefined ? rows : rows.toSorted((one, other) => (value(other) ?? -1) - (value(one) ?? -1));
  const sort = (title: string) => () => {
    by.value = by.value === title ? '' : title;
  };
  const kindOfColumn = ([, , isSorted, width]: Column<Row>) => [isSorted && 'number', width].filter(Boolean).join(' ');
  const heads = columns.map((column) => {
    const [title, , isSorted] = column;
    return (
      <th
        key={title}
        scope="col"
        class={kindOfColumn(column)}
        aria-sort={by.value === title ? 'descending' : undefined}
      >
        {isSorted ? (
          <button type="button" class="sort" onClick={sort(title)}>
            {title}
          </button>
        ) : (
          title
        )}
      </th>
    );
  });
  return (
    <>
      <table class={kind}>
        <caption>{foreign(caption)}</caption>
        <thead>
          <tr>{heads}</tr>
        </thead>
        <tbody>
          {order.slice(0, limit.value).map((row) => (
            <tr key={keyOf(row)} class={kindOf?.(row)}>
              {columns.map((column) => (
                <td key={column[0]} data-title={column[0]} class={kindOfColumn(column)}>
                  {shown(column[1](row))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <More limit={limit} count={rows.length} />
    </>
  );
}

function shown(content: ComponentChildren): ComponentChildren {
  if (typeof content === 'number') return number(content);
  return typeof content === 'string' ? foreign(content) : (content ?? NONE);
}

/** Number of rows that a long list shows at first, and adds on request. */
export const PAGE_ROWS = 100;

function More({ limit, count }: { limit: { value: number }; count: number }) {
  if (count <= limit.value) return null;
  const more = () => {
    limit.value += PAGE_ROWS;
  };
  return (
    <button type="button" class="more" onClick={more}>
      Show more, {number(count - limit.value)} left
    </button>
  );
}

export function Pairs(props: { rows: readonly (readonly [name: string, value: ComponentChildren])[]; kind?: string }) {
  return (
    <dl class={props.kind}>
      {props.rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{shown(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Filter of a part. Its words are in the address, so that a reload keeps them. */
export function Search({ label }: { label: string }) {
  return (
    <input
      type="search"
      class="filter"
      aria-label={label}
      aria-keyshortcuts="/"
      placeholder={`${label} ( / )`}
      value={queried('words')}
      onInput={(event) => setQuery('words', event.currentTarget.value)}
    />
  );
}

type Options = readonly (readonly [value: string, text: string])[];

/** Filter by one value, which is in the address. */
export function Choice({ label, name, options }: { label: string; name: string; options: Options }) {
  const set = (value: string) => setQuery(name, value);
  return <Select label={label} value={queried(name)} options={options} onChange={set} />;
}

/** Options of a filter: all, or one of these values. The chosen value stays an option. */
export function optionsOf(all: string, name: string, values: readonly (string | null)[]): Options {
  const options = [...new Set([...values, queried(name)])].filter((value) => value !== null && value !== '').sort();
  return [['', all], ...options.map((value) => [value, value] as const)] as Options;
}

export function Select(props: { label: string; value: string; options: Options; onChange: (value: string) => void }) {
  return (
    <select
      aria-label={props.label}
      value={props.value}
      onChange={(event) => props.onChange(event.currentTarget.value)}
    >
      {props.options.map(([value, text]) => (
        <option key={value} value={value}>
          {foreign(text)}
        </option>
      ))}
    </select>
  );
}

/** Placeholder for an answer that is not there yet, or the fault of one that was refused. */
export function Waiting({ fault }: { fault?: string | undefined }) {
  return <p class={fault === undefined ? 'quiet' : 'bad'}>{fault === undefined ? '…' : prose(fault)}</p>;
}

/** Reads an answer while it is wanted, and again when `revision` changes. */
export function useRead<R extends keyof Requests>(
  request: R,
  values: Requests[R]['values'],
  revision: unknown = '',
  isWanted = true,
) {
  return useAnswer(() => ask(request, values), JSON.stringify([request, values, revision]), isWanted);
}

/** Asks for an answer while it is wanted, and again when `key` changes. The old answer stays until then. */
export function useAnswer<T>(find: () => Promise<T>, key: string, isWanted = true) {
  const result = useSignal<{ answer?: T; fault?: string; at?: number }>({});
  const latest = useRef(0);
  const load = async () => {
    latest.current += 1;
    const turn = latest.current;
    const next = await find().then(
      (answer) => ({ answer, at: Date.now() }),
      ({ message: fault }: Error) => ({ ...result.value, fault }),
    );
    if (turn === latest.current) result.value = next;
  };
  useEffect(() => {
    if (isWanted) void load();
  }, [key, isWanted]);
  return { ...result.value, load };
}
