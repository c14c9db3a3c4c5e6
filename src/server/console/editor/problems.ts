/// <reference lib="dom" />
import { linter, lintGutter, type Diagnostic } from '@codemirror/lint';
import { StateEffect, type Extension, type Text } from '@codemirror/state';
import type { EditorView, ViewUpdate } from '@codemirror/view';
import type { BotValidation } from '../../../api/bot-specs.ts';

const PAUSE_MS = 350;

/**
 * Checks the text on the server after each pause in typing, marks the problems, and lists them in
 * `#problems`.
 * @param send sends the typed texts to the server.
 */
export function showProblems(send: () => Promise<Response>): Extension {
  const source = async (view: EditorView): Promise<readonly Diagnostic[]> => {
    const { doc } = view.state;
    try {
      const answer = await send();
      if (!answer.ok) {
        const { detail } = (await answer.json()) as { readonly detail: string };
        showState(`The text could not be checked: ${detail}.`);
        return [];
      }
      const { problems } = (await answer.json()) as BotValidation;
      list(view, problems);
      return problems.map((problem) => diagnosticOf(problem, doc));
    } catch {
      showState('The text could not be checked, because the server does not answer.');
      return [];
    }
  };
  const needsRefresh = ({ transactions }: ViewUpdate): boolean =>
    transactions.some(({ effects }) => effects.some((effect) => effect.is(CODE_CHANGED)));
  return [linter(source, { delay: PAUSE_MS, needsRefresh }), lintGutter()];
}

const CODE_CHANGED = StateEffect.define();

/** Checks the text of `view` again after a pause, because code beside it has changed. */
export function checkAgain(view: EditorView): void {
  view.dispatch({ effects: CODE_CHANGED.of(null) });
}

type Problem = BotValidation['problems'][number];

function diagnosticOf({ line, column, detail, suggestion, code }: Problem, doc: Text): Diagnostic {
  const { from, to } = placeOf({ line, column }, doc);
  return {
    from,
    to,
    severity: 'error',
    source: code,
    message: suggestion === undefined ? detail : `${detail}; did you mean ${suggestion}?`,
  };
}

/** The word at a position, or what is left of the line. */
function placeOf({ line = 1, column = 1 }: Pick<Problem, 'line' | 'column'>, doc: Text) {
  const at = doc.line(Math.min(line, doc.lines));
  const from = Math.min(at.from + column - 1, at.to);
  const [word = ''] =
    /^(?:"[^"]*"|'[^']*'|[^\s,:{}[\]]+)/.exec(at.text.slice(from - at.from)) ?? [];
  return { from, to: word === '' ? at.to : from + word.length };
}

function list(view: EditorView, problems: readonly Problem[]): void {
  if (problems.length === 0) {
    showState('No problems.', 'good');
    return;
  }
  const items = problems.map((problem) => {
    const item = document.createElement('li');
    const place = document.createElement('button');
    place.type = 'button';
    place.className = 'place';
    place.textContent = `Line ${problem.line ?? 1}`;
    place.addEventListener('click', () => {
      const { from } = placeOf(problem, view.state.doc);
      view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
      view.focus();
    });
    const { detail, suggestion } = problem;
    const more = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
    item.append(place, ` ${detail}${more}`);
    return item;
  });
  const all = document.createElement('ul');
  all.className = 'problems';
  all.setAttribute('aria-label', 'Problems');
  all.append(...items);
  document.querySelector('#problems')!.replaceChildren(all);
}

function showState(text: string, className = 'note'): void {
  const line = document.createElement('p');
  line.className = className;
  line.textContent = text;
  document.querySelector('#problems')!.replaceChildren(line);
}
