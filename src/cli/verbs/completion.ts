import { GLOBAL_FLAGS, optionsOf, startsWith, type TypedOption } from '../command.ts';
import {
  type Arguments,
  type Completion,
  defineVerb,
  type LoadedVerb,
  loadVerbs,
} from '../verb.ts';

export const verb = defineVerb({
  summary: 'print the completion script for a shell',
  description: [
    'Load the script into the current shell, or save it to a file that the shell reads at start:',
    '  bash: source <(service-local completion bash)',
    '  zsh:  source <(service-local completion zsh), after compinit',
  ].join('\n'),
  arguments: {
    shell: { description: 'bash or zsh', choices: ['bash', 'zsh'] },
  },
  examples: [
    'completion bash > ~/.local/share/bash-completion/completions/service-local',
    'completion zsh > "${fpath[1]}/_service-local"',
  ],
  async run(context, { shell }) {
    const verbs = await loadVerbs(context.verbs);
    const script = shell === 'bash' ? bashScript(verbs) : zshScript(verbs);
    return { data: { shell, script }, show: (out) => out.line(script) };
  },
});

interface Offer {
  readonly words: readonly string[];
  readonly files?: 'file' | 'directory' | undefined;
}

function bashScript(verbs: readonly LoadedVerb[]): string {
  return `_service_local() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]}
  local verb='' offer='' options='' files='' i word
  if [[ $before == = ]]; then
    before=\${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $current == = ]]; then
    current=''
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
${findVerb(verbs)}
  done
${offers(verbs)}
  COMPREPLY=()
  while IFS= read -r word; do
    COMPREPLY+=("$word")
  done < <(
    compgen -W "$offer" -- "$current"
    [[ $files == file ]] && compgen -f -- "$current"
    [[ $files == directory ]] && compgen -d -- "$current"
  )
  [[ -n $files ]] && compopt -o filenames 2>/dev/null
  return 0
}
complete -F _service_local service-local`;
}

function zshScript(verbs: readonly LoadedVerb[]): string {
  return `#compdef service-local
_service-local() {
  local current=\${words[CURRENT]} before=\${words[CURRENT - 1]}
  local verb='' offer='' options='' files='' i word
  if [[ $current == --*=* ]]; then
    before=\${current%%=*}
    current=\${current#*=}
    compset -P '*='
  fi
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
${findVerb(verbs)}
  done
${offers(verbs)}
  [[ -n $offer ]] && compadd -- \${=offer}
  [[ $files == file ]] && _files
  [[ $files == directory ]] && _files -/
  return 0
}
if [[ \${funcstack[1]} == _service-local ]]; then
  _service-local "$@"
else
  compdef _service-local service-local
fi`;
}

/**
 * Shell lines for bash and zsh that extend `$verb` by `$word` or leave the loop. After an unknown
 * word, `$verb` is a name without completions.
 */
function findVerb(verbs: readonly LoadedVerb[]): string {
  const paths = prefixes(verbs).map((path) => path && ` ${path}`);
  const named = new Set(verbs.map(({ path }) => ` ${path.join(' ')}`));
  const quoted = (some: readonly string[]): string => some.map((path) => `'${path}'`).join(' | ');
  return `    case "$verb $word" in
      ${quoted(paths.filter((path) => path !== ''))}) verb="$verb $word" ;;
      ${GLOBAL_FLAGS.map(({ long }) => `*' ${long}'`).join(' | ')}) ;;
      *)
        case $verb in
          ${quoted(paths.filter((path) => !named.has(path)))}) verb=none ;;
        esac
        break
        ;;
    esac`;
}

/** Shell lines for bash and zsh that set `$options`, `$offer` and `$files` at `$verb`. */
function offers(verbs: readonly LoadedVerb[]): string {
  const cases = prefixes(verbs).map((path) => {
    const named = verbs.find((candidate) => candidate.path.join(' ') === path)?.verb;
    const options = [...(named ? optionsOf(named) : []), ...GLOBAL_FLAGS];
    const names = options.flatMap(({ short, long }) => (short ? [short, long] : [long]));
    if (path === '') names.push('--version');
    const { words, files } = argumentOffer(named?.arguments);
    return `    '${path && ` ${path}`}')
      options='${[...names, '--help'].join(' ')}'
      case $before in
${optionCases(options)}        *) ${assign({ words: [...nextWords(verbs, path), ...words], files })} ;;
      esac
      ;;`;
  });
  return `  case $verb in
${cases.join('\n')}
  esac
  if [[ $current == -* ]]; then
    offer=$options
    files=''
  fi`;
}

/** Completes only the values of an option if that option precedes the cursor. */
function optionCases(options: readonly TypedOption[]): string {
  const byOffer = Map.groupBy(
    options.filter(({ value }) => value !== undefined),
    ({ choices, complete }) => assign(offerOf(choices, complete)),
  );
  return [...byOffer]
    .map(([assignment, alike]) => {
      const names = alike.flatMap(({ short, long }) => (short ? [short, long] : [long]));
      return `        ${names.join(' | ')}) ${assignment} ;;\n`;
    })
    .join('');
}

function argumentOffer(specs: Arguments = {}): Offer {
  const all = Object.values(specs).map(({ choices, complete }) => offerOf(choices, complete));
  return {
    words: all.flatMap(({ words }) => words),
    files: all.find(({ files }) => files !== undefined)?.files,
  };
}

function offerOf(choices: readonly string[] = [], complete: Completion = []): Offer {
  return typeof complete === 'string'
    ? { words: choices, files: complete }
    : { words: [...choices, ...complete] };
}

function assign({ words, files }: Offer): string {
  return `offer='${words.join(' ')}' files='${files ?? ''}'`;
}

/** Every verb and every prefix of one, separated by spaces: '', 'config', 'config list'. */
function prefixes(verbs: readonly LoadedVerb[]): string[] {
  const all = verbs.flatMap(({ path }) =>
    Array.from({ length: path.length + 1 }, (_, length) => path.slice(0, length).join(' ')),
  );
  return [...new Set(all)];
}

function nextWords(verbs: readonly LoadedVerb[], prefix: string): string[] {
  const words = prefix === '' ? [] : prefix.split(' ');
  const next = verbs
    .filter(({ path }) => path.length > words.length && startsWith(path, words))
    .map(({ path }) => path[words.length]!);
  return [...new Set(next)];
}
