import { signal } from '@preact/signals';
import { render } from 'preact';

/** Parts of the page, in the order of their links. */
const PARTS = ['needs', 'servers', 'calls', 'tools', 'clients', 'logins', 'recording'] as const;
const TITLES = { needs: 'Needs you' } as Readonly<Record<string, string>>;

const part = signal(partOf(location.hash));
addEventListener('hashchange', () => {
  part.value = partOf(location.hash);
});

function partOf(hash: string): string {
  const name = hash.split('/')[1] ?? '';
  return PARTS.find((each) => each === name) ?? 'needs';
}

function titleOf(name: string): string {
  return TITLES[name] ?? `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

function Page() {
  return (
    <>
      <header>
        <nav aria-label="Parts of the page">
          {PARTS.map((name) => (
            <a key={name} href={`#/${name}`} aria-current={part.value === name ? 'page' : undefined}>
              {titleOf(name)}
            </a>
          ))}
        </nav>
      </header>
      <main>
        <h1>{titleOf(part.value)}</h1>
      </main>
    </>
  );
}

render(<Page />, document.body);
