// What npm runs after it has installed the packages of a clone: builds the program, and says what to type next. The installation of
// the published package does not run it.
import './build.mjs';

// Standard output belongs to commands such as `npm pack`.
if (process.env.npm_command === 'install' || process.env.npm_command === 'ci')
  process.stderr.write(
    'Trunkline is built. Type next:\n  npm run demo   shows it at work\n  npm test       runs the tests\n',
  );
