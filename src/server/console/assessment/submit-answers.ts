import type { Content } from '../layout.ts';
import type { Form, GoTo, Visit } from '../pages.ts';
import { readChanged, type Typed } from './answer-field.ts';
import { pathBeside, readDraftPage, saveDraft, statusOf, type DraftPage } from './draft-page.ts';

/** A page with a form of answers. */
interface AnswerForm {
  /** Renders the page with what was typed, and its faults. */
  readonly show: (draft: DraftPage, typed: Typed) => Content;
  /** The page that a saved form leads to, and its message. */
  readonly page: string;
  readonly message: string;
}

/** Saves the answers of a form that were changed, or shows the form again with faults at its fields. */
export async function submitAnswers(
  visit: Visit,
  form: Form,
  { show, page, message }: AnswerForm,
): Promise<GoTo | Content> {
  const goTo = pathBeside(visit, page);
  const human = readChanged(form);
  if (Object.keys(human).length === 0) return { goTo, message: 'Nothing has changed.' };
  const faults = await saveDraft(visit, form, { human });
  if (faults === undefined) return { goTo, message };
  const content = show(await readDraftPage(visit), { form, faults });
  return { ...content, status: statusOf(faults) };
}
