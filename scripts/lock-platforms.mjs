// Which packages of other platforms a lock file lacks.

const PLATFORM =
  /-(android|darwin|freebsd|linux|openharmony|win32)-(arm64|arm|ia32|ppc64|riscv64|s390x|x64)(?:-(.+))?$/;

/** The optional dependencies that are in no entry of the lock file, each with its exact version. */
export function missingPlatforms(packages) {
  const missing = new Map();
  for (const [folder, { optionalDependencies = {} }] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(optionalDependencies)) {
      const places = [`${folder}/node_modules/${name}`, `node_modules/${name}`];
      if (!places.some((place) => place in packages)) missing.set(name, { name, version });
    }
  }
  return [...missing.values()];
}

/** What the name of a native package says about its platform, as an entry of the lock file in the order of npm. */
export function entryFor({ name, version }) {
  const [, os, cpu, variant = ''] = PLATFORM.exec(name) ?? [];
  if (os === undefined) throw new Error(`the name ${name} tells no platform`);
  const libc = variant.startsWith('musl') ? 'musl' : 'glibc';
  // Packages without a variant for musl declare no C library.
  const ofLinux = os === 'linux' && variant !== '' && { libc: [libc] };
  return { version, cpu: [cpu], dev: true, ...ofLinux, optional: true, os: [os] };
}
