mod contextual_laws;
mod fixtures;
mod hard;
mod laws;
mod saboteurs;
mod score_mods;
mod stack_saboteurs;
mod state;
