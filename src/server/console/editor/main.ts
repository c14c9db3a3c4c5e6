/// <reference lib="dom" />
/**
 * The editor of bots: the entry of a bundle with CodeMirror that `npm run prepare` builds. Without
 * it, the text areas of the form work by themselves.
 */
import { autocompletion } from '@codemirror/autocomplete';
import { yamlLanguage } from '@codemirror/lang-yaml';
import { forceLinting } from '@codemirror/lint';
import type { Extension } from '@codemirror/state';
import { backtestHere, followBacktest } from './backtest.ts';
import { completeSpec } from './completion.ts';
import { checkAgain, showProblems } from './problems.ts';
import { reviewChanges } from './review.ts';
import type { Schema } from './schema.ts';
import { replaceArea } from './text-view.ts';

async function openEditor(form: HTMLFormElement): Promise<void> {
  const spec = form.querySelector<HTMLTextAreaElement>('#spec')!;
  const view = replaceArea(spec, [await completion(form), showProblems(() => validate(form))]);
  const others = form.querySelectorAll<HTMLTextAreaElement>('textarea[data-language=typescript]');
  for (const area of others) {
    replaceArea(area, []);
    area.addEventListener('input', () => checkAgain(view));
  }
  form.querySelector<HTMLButtonElement>('button[value=check]')!.hidden = true;
  forceLinting(view);
}

async function completion(form: HTMLFormElement): Promise<Extension> {
  const answer = await fetch('/bots/schema').catch(() => undefined);
  if (answer?.ok !== true) return [];
  const schema = (await answer.json()) as Schema;
  const datasets = JSON.parse(form.dataset['datasets']!) as readonly string[];
  const source = completeSpec(schema, datasets);
  return [
    yamlLanguage.data.of({ autocomplete: source }),
    // After a key, its values are offered.
    autocompletion({ activateOnCompletion: () => true, icons: false }),
  ];
}

function validate(form: HTMLFormElement): Promise<Response> {
  const fields = new FormData(form);
  const [names, texts] = [fields.getAll('file'), fields.getAll('code')] as [string[], string[]];
  const code = names.map((name, i) => [name.trim(), texts[i]!] as const);
  const files = Object.fromEntries(
    code.filter(([name, text]) => name !== '' && text.trim() !== ''),
  );
  const yaml = fields.get('spec');
  const bot = form.dataset['bot']!;
  return fetch(`/bots/validate${bot === '' ? '' : `?bot=${encodeURIComponent(bot)}`}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'service-csrf': document.querySelector<HTMLMetaElement>('meta[name=csrf-token]')!.content,
    },
    body: JSON.stringify(Object.keys(files).length === 0 ? { yaml } : { yaml, files }),
  });
}

/** Warns before typed text is lost, and keeps the page during a backtest. */
function watchForm(form: HTMLFormElement): void {
  let isChanged = false;
  form.addEventListener('input', () => {
    isChanged = true;
  });
  addEventListener('beforeunload', (event) => {
    if (isChanged) event.preventDefault();
  });
  const review = form.querySelector<HTMLButtonElement>('[data-review]')!;
  review.hidden = form.dataset['base'] === '';
  review.addEventListener('click', () => reviewChanges(form));
  // Captures the event before other handlers let the browser submit the form.
  document.addEventListener(
    'submit',
    (event) => {
      if (event.target !== form) return;
      const { submitter } = event;
      if (submitter instanceof HTMLButtonElement && submitter.value === 'backtest') {
        event.preventDefault();
        void backtestHere(form, submitter);
      } else {
        isChanged = false;
      }
    },
    true,
  );
}

const form = document.querySelector<HTMLFormElement>('form[data-editor]');
if (form !== null) {
  watchForm(form);
  followBacktest();
  void openEditor(form);
}
