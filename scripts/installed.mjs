// What npm runs after it has installed the packages of a clone: builds the program, and says what to type next. The script has the
// event `dependencies`, because `prepare` would stand in the published package, and npm warns of it there.
import './build.mjs';

process.stderr.write(
  'Trunkline is built. Type next:\n  npm run demo   shows it at work\n  npm test       runs the tests\n',
);
