/** What a task is called: its own words where the environment gives some, else its number; its key is for programs. */

const LENGTH_MAX = 80;

export function taskName({ task, task_preview }: { task: number; task_preview: string }): string {
  const words = task_preview.replace(/\s+/g, " ").trim();
  if (words === "") return `Task ${task}`;
  return words.length > LENGTH_MAX ? `${words.slice(0, LENGTH_MAX)} …` : words;
}
