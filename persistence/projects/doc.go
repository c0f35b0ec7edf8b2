// Package projects stores projects with their settings, their instructions and their work history.
//
// A project is deleted by changing its row alone: conversations.Visible reads deleted_at of the project of a
// conversation. Package projects knows the table of conversations, but neither their content nor their changes; packages
// conversations and turns use it to lock the project of a conversation and to record work. The locks are taken in this
// order: conversation, account, project. Only steps that skip locked rows lock conversations after their project.
package projects
